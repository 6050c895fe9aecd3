/* Reads the file `traces`: for each trace the number of its steps, and for each step four numbers. */
#include <stdio.h>
#include <stdlib.h>

static int trace_count;
static int *trace_lengths, **trace_steps, *trace_reached;

static void trace_print(void) {
  for (int i = 0; i < trace_count; i++)
    printf("trace %d: %s %d\n", i, trace_reached[i] < 0 ? "accepted" : "rejected at", trace_reached[i]);
}

__attribute__((constructor)) static void trace_read(void) {
  FILE *file = fopen("traces", "r");
  if (file == NULL || fscanf(file, "%d", &trace_count) != 1) exit(2);
  trace_lengths = calloc(trace_count, sizeof(int));
  trace_steps = calloc(trace_count, sizeof(int *));
  trace_reached = calloc(trace_count, sizeof(int));
  for (int i = 0; i < trace_count; i++) {
    if (fscanf(file, "%d", &trace_lengths[i]) != 1) exit(2);
    trace_steps[i] = calloc(trace_lengths[i] * 4, sizeof(int));
    for (int j = 0; j < trace_lengths[i] * 4; j++)
      if (fscanf(file, "%d", &trace_steps[i][j]) != 1) exit(2);
  }
  fclose(file);
  atexit(trace_print);
}

/* Returns one of the four numbers of a step. The verifier tries other paths, too, so the farthest step counts. */
static int trace_value(int trace, int step, int part) {
  if (trace_reached[trace] >= 0 && step > trace_reached[trace]) trace_reached[trace] = step;
  return step < trace_lengths[trace] ? trace_steps[trace][step * 4 + part] : 0;
}

static void trace_accepted(int trace) {
  trace_reached[trace] = -1;
}
