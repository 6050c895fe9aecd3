import { subscribe } from "node:diagnostics_channel";
import { SpanStatusCode } from "@opentelemetry/api";
/** Creates a span for each lock, from the call that acquires it to its release. */
export function traceLocks(tracer) {
    const spans = new Map();
    on("lockweave:acquire", ({ key, site, requestId }) => {
        const attributes = { "lock.key": key, "lock.site": site ?? "by hand" };
        spans.set(requestId, tracer.startSpan(`lock ${key}`, { attributes }));
    });
    on("lockweave:wait", ({ requestId }) => spans.get(requestId)?.addEvent("wait"));
    on("lockweave:grant", ({ requestId, waitedMs }) => {
        spans.get(requestId)?.addEvent("grant").setAttribute("lock.waited_ms", waitedMs);
    });
    on("lockweave:renew", ({ requestId }) => spans.get(requestId)?.addEvent("renew"));
    on("lockweave:lost", ({ requestId, reason }) => {
        spans.get(requestId)?.setStatus({ code: SpanStatusCode.ERROR, message: reason });
    });
    on("lockweave:give-up", ({ requestId, outcome }) => {
        // A skipped body is no error.
        if (outcome === "failed")
            spans.get(requestId)?.setStatus({ code: SpanStatusCode.ERROR, message: "given up" });
        end(requestId);
    });
    on("lockweave:release", ({ requestId, heldMs, outcome }) => {
        spans.get(requestId)?.setAttributes({ "lock.held_ms": heldMs, "lock.outcome": outcome });
        end(requestId);
    });
    function end(requestId) {
        spans.get(requestId)?.end();
        spans.delete(requestId);
    }
}
function on(name, listener) {
    subscribe(name, (event) => listener(event));
}
