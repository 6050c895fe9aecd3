import { onMethod, SWITCHES, type Row } from "./row";

// The problems `LW11..`.

const DURATION_IN_SECONDS =
  "a duration such as `500ms`, `20s`, or `2m` (a bare number is in s), at least 100 ms and at most 24 hours";
const DURATION_IN_MS =
  "a duration such as `500ms`, `20s`, or `2m` (a bare number is in ms), at most 24 hours";
const KEY_TYPES = "Expected `keyType` to be `VALUE`, `CLASS`, or `JSON`";

const WAIT_BUDGET =
  "a duration such as `500ms`, `20s`, or `2m` (with its unit), at most 24 hours, or `0` or `forever`";

export const VALUES: readonly Row[] = [
  {
    title: "a tag without attributes",
    source: onMethod("«@redisLock»"),
    code: "LW1101",
    message:
      "`@redisLock` needs `businessFlag=` (the namespace of its keys) or `key=` (the whole key). Fix: add one of them.",
  },
  {
    title: "a tag without `businessFlag`",
    source: onMethod("«@redisLock» keyName=orderNo lockTime=20"),
    code: "LW1101",
    message:
      "`@redisLock` needs `businessFlag=` (the namespace of its keys) or `key=` (the whole key). Fix: add one of them.",
  },
  {
    title: "a blank `businessFlag`",
    source: onMethod('@redisLock businessFlag="« »"'),
    code: "LW1102",
    message: "Expected `businessFlag` to be printable, non-empty text, got ` `.",
  },
  {
    title: "a `businessFlag` over two lines",
    source: onMethod('@redisLock businessFlag="«pay\n   * order»"'),
    code: "LW1102",
    message: "Expected `businessFlag` to be printable, non-empty text, got `pay\n     order`.",
  },
  {
    title: "a `businessFlag` with a line separator",
    source: onMethod('@redisLock businessFlag="«pay\u2028order»"'),
    code: "LW1102",
    message: "Expected `businessFlag` to be printable, non-empty text, got `pay\u2028order`.",
  },
  {
    title: "a list of flags",
    source: onMethod("@redisLock businessFlag=«pay,ship» keyName=orderNo"),
    code: "LW1103",
    message: "Expected one value for `businessFlag`, got a list.",
  },
  {
    title: "a list of conditions",
    source: onMethod("@redisLock businessFlag=pay when=«order.isLarge,order.isNew»"),
    code: "LW1103",
    message: "Expected one value for `when`, got a list.",
  },
  {
    title: "a condition without quotes",
    source: onMethod("@redisLock businessFlag=pay when=«!order.isSmall»"),
    code: "LW1201",
    message:
      "Expected a parameter or a path such as `order.user.id`, got `!order.isSmall`. Fix: put other expressions in quotes.",
  },
  {
    title: "a skipValue without an attribute that skips",
    source: onMethod('@redisLock businessFlag=pay onFailure=throw «skipValue="false»"'),
    code: "LW1133",
    message:
      "`skipValue` needs `onFailure=skip` or `onUnreachable=skip`. Without them, the call throws. Fix: add one of them, or remove `skipValue`.",
  },
  {
    title: "a skipValue that is not an expression",
    source: onMethod('@redisLock businessFlag=pay onFailure=skip skipValue="«return 5»"'),
    code: "LW1203",
    message: "Expected an expression between the quotes, got `return 5`.",
  },
  {
    title: "a holdAtMost that is shorter than the lockTime",
    source: onMethod("@redisLock businessFlag=pay lockTime=1m «holdAtMost=59s»"),
    code: "LW1132",
    message: "Expected `holdAtMost` to be at least `lockTime=1m`.",
  },
  {
    title: "a holdAtMost without a watchdog",
    source: onMethod("@redisLock businessFlag=pay «holdAtMost=5m» watchdog=false"),
    code: "LW1130",
    message:
      "`holdAtMost` and `watchdog=false` cannot be combined: without a watchdog, a lock lasts at most its lock time. Fix: remove one of them.",
  },
  {
    title: "a lockAtLeast that is longer than the lockTime before it",
    source: onMethod("@redisLock businessFlag=pay lockTime=10s «lockAtLeast=11s»"),
    code: "LW1131",
    message:
      "Expected `lockAtLeast` to be at most `lockTime=10s`, because the lock of a dead process expires after that time.",
  },
  {
    title: "a list of lock times",
    source: onMethod("@redisLock businessFlag=pay lockTime=«20, 30»"),
    code: "LW1103",
    message: "Expected one value for `lockTime`, got a list.",
  },
  {
    title: "a list of key types",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=«VALUE,JSON»"),
    code: "LW1103",
    message: "Expected one value for `keyType`, got a list.",
  },
  {
    title: "a list of key classes",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=CLASS fieldName=id keyClass=«A,B»"),
    code: "LW1103",
    message: "Expected one value for `keyClass`, got a list.",
  },
  ...["soon", "-20", "20 s", "20sec", "0", "99ms", "25h", "1e3", "1441m"].map((time) => {
    const [found = "", junk] = time.split(" ");
    return junk === undefined
      ? {
          title: `lockTime=${time}`,
          source: onMethod(`@redisLock businessFlag=pay lockTime=«${found}»`),
          code: "LW1104",
          message: `Expected \`lockTime\` to be ${DURATION_IN_SECONDS}, got \`${found}\`.`,
        }
      : {
          title: `lockTime=${time}`,
          source: onMethod(`@redisLock businessFlag=pay lockTime=${found} «${junk}»`),
          code: "LW1001",
          message: `Expected an attribute such as \`keyName=orderNo\`, found \`${junk}\`. Fix: write the unit directly after its number: \`lockTime=${found}${junk}\`.`,
        };
  }),
  {
    title: "attributes that cannot be combined",
    source: onMethod("@redisLock businessFlag=pay «lockAtLeast=5s» autoUnlock=false"),
    code: "LW1130",
    message:
      "`lockAtLeast` and `autoUnlock=false` cannot be combined: with `autoUnlock=false`, a lock lasts for its lock time anyway. Fix: remove one of them.",
  },
  {
    title: "a lockAtLeast that is longer than the lockTime after it",
    source: onMethod("@redisLock businessFlag=pay «lockAtLeast=1m» lockTime=30s"),
    code: "LW1131",
    message:
      "Expected `lockAtLeast` to be at most `lockTime=30s`, because the lock of a dead process expires after that time.",
  },
  ...["forever", "-1", "25h", "86400001"].map((time) => ({
    title: `waitTime=${time}`,
    source: onMethod(`@redisLock businessFlag=pay waitTime=«${time}»`),
    code: "LW1104",
    message: `Expected \`waitTime\` to be ${DURATION_IN_MS}, got \`${time}\`.`,
  })),
  ...["5", "1", "-1s", "25h", "endless", "Forever", "0.5"].map((time) => ({
    title: `wait=${time}`,
    source: onMethod(`@redisLock businessFlag=pay wait=«${time}»`),
    code: "LW1104",
    message: `Expected \`wait\` to be ${WAIT_BUDGET}, got \`${time}\`.`,
  })),
  {
    title: "a signal that is not a path",
    source: onMethod('@redisLock businessFlag=pay signal="«AbortSignal.timeout(5)»"'),
    code: "LW1201",
    message: "Expected a parameter or a path such as `order.user.id`, got `AbortSignal.timeout(5)`.",
  },
  {
    title: "a signal that is not a parameter",
    source: onMethod("@redisLock businessFlag=pay signal=«ordr».signal"),
    code: "LW1202",
    message: "The function has no parameter `ordr`. Did you mean `order`?",
  },
  {
    title: "a list of signals",
    source: onMethod("@redisLock businessFlag=pay signal=«order.signal,this.signal»"),
    code: "LW1103",
    message: "Expected one value for `signal`, got a list.",
  },
  {
    title: "an invalid expression",
    source: onMethod('@redisLock businessFlag=pay lockTime="${«config.»}"'),
    code: "LW1211",
    message:
      "Expected a parameter, a path such as `order.user.id`, or another expression in `${...}`, got `config.`. Fix: for several values, write several `${...}` with text between them.",
  },
  {
    title: "an expression that is not closed",
    source: onMethod('@redisLock businessFlag=pay wait="«${config.wait»"'),
    code: "LW1210",
    message: "This `${` is not closed. Expected a parameter or a path, and `}`.",
  },
  {
    title: "a count with text around its expression",
    source: onMethod('@redisLock businessFlag=pay permits="«1${config.limit}»"'),
    code: "LW1116",
    message:
      "Expected `permits` to be one number or one `${...}`, without other text. Fix: put the whole calculation into the braces.",
  },
  {
    title: "an expression for a boolean attribute",
    source: onMethod('@redisLock businessFlag=pay fencing="«${config.fencing}»"'),
    code: "LW1106",
    message: "Expected `fencing` to be `true` or `false`, got `${config.fencing}`.",
  },
  {
    title: "an expression beside an attribute that excludes it",
    source: onMethod('@redisLock businessFlag=pay «holdAtMost="${config.limit}»" watchdog=false'),
    code: "LW1130",
    message:
      "`holdAtMost` and `watchdog=false` cannot be combined: without a watchdog, a lock lasts at most its lock time. Fix: remove one of them.",
  },
  {
    title: "permits from an expression beside a fencing token",
    source: onMethod('@redisLock businessFlag=pay permits="${config.limit}" «fencing=true»'),
    code: "LW1123",
    message:
      "`fencing` needs an exclusive lock. Fencing tokens order holders, but `mode=read` and `permits` let several hold the lock at once. Fix: remove one of them.",
  },
  {
    title: "two wait budgets",
    source: onMethod("@redisLock businessFlag=pay «retryTimes=3» wait=5s"),
    code: "LW1130",
    message:
      "`retryTimes` and `wait` cannot be combined: `wait` is the whole wait budget. Fix: remove one of them.",
  },
  ...["-1", "1.5", "many", "1000001", "99999999", "3x"].map((count) => ({
    title: `retryTimes=${count}`,
    source: onMethod(`@redisLock businessFlag=pay retryTimes=«${count}»`),
    code: "LW1105",
    message: `Expected \`retryTimes\` to be a whole number from 0 to 1000000, got \`${count}\`.`,
  })),
  ...["-1", "1.5", "all", "101"].map((count) => ({
    title: `replicas=${count}`,
    source: onMethod(`@redisLock businessFlag=pay replicas=«${count}»`),
    code: "LW1105",
    message: `Expected \`replicas\` to be a whole number from 0 to 100, got \`${count}\`.`,
  })),
  ...SWITCHES.filter((name) => name !== "each" && name !== "autoUnlock").map((name) => ({
    title: `${name}=yes`,
    source: onMethod(`@redisLock businessFlag=pay ${name}=«yes»`),
    code: "LW1106",
    message: `Expected \`${name}\` to be \`true\` or \`false\`, got \`yes\`.`,
  })),
  ...["yes", "onerror", "error"].map((value) => ({
    title: `autoUnlock=${value}`,
    source: onMethod(`@redisLock businessFlag=pay autoUnlock=«${value}»`),
    code: "LW1106",
    message: `Expected \`autoUnlock\` to be \`true\`, \`false\`, or \`onError\`, got \`${value}\`.`,
  })),
  {
    title: "onUnreachable=run",
    source: onMethod("@redisLock businessFlag=pay onUnreachable=«run»"),
    code: "LW1115",
    message: "Expected `onUnreachable` to be `throw` or `skip`, got `run`.",
  },
  ...["skip", "false", "Error"].map((action) => ({
    title: `onLost=${action}`,
    source: onMethod(`@redisLock businessFlag=pay onLost=«${action}»`),
    code: "LW1110",
    message: `Expected \`onLost\` to be \`throw\` or \`warn\`, got \`${action}\`.`,
  })),
  {
    title: "a store whose name has a space",
    source: onMethod('@redisLock businessFlag=pay store="«pay ments»"'),
    code: "LW1112",
    message:
      "Expected `store` to be a name in `configure({ stores })` (letters, digits, `-`, and `_`), got `pay ments`.",
  },
  {
    title: "release=later",
    source: onMethod("@redisLock businessFlag=pay release=«later»"),
    code: "LW1114",
    message: "Expected `release` to be `awaited` or `background`, got `later`.",
  },
  {
    title: "mode=reads",
    source: onMethod("@redisLock businessFlag=pay mode=«reads»"),
    code: "LW1120",
    message: "Expected `mode` to be `read` or `write`, got `reads`.",
  },
  ...["0", "-1", "1.5", "1001", "many"].map((count) => ({
    title: `permits=${count}`,
    source: onMethod(`@redisLock businessFlag=pay permits=«${count}»`),
    code: "LW1121",
    message: `Expected \`permits\` to be a whole number from 1 to 1000, got \`${count}\`.`,
  })),
  {
    title: "a mode and permits",
    source: onMethod("@redisLock businessFlag=pay mode=read «permits=5»"),
    code: "LW1122",
    message: "A lock has either a `mode` or `permits`. Fix: remove one of them.",
  },
  ...["mode=read", "permits=2"].map((sharing) => ({
    title: `a fencing token with ${sharing}`,
    source: onMethod(`@redisLock businessFlag=pay ${sharing} «fencing=true»`),
    code: "LW1123",
    message:
      "`fencing` needs an exclusive lock. Fencing tokens order holders, but `mode=read` and `permits` let several hold the lock at once. Fix: remove one of them.",
  })),
  {
    title: "mode=read on a generator",
    source: `/** @redisLock businessFlag=pay «mode=read» */ export async function* pay() {}`,
    code: "LW1315",
    message:
      "A generator cannot have `mode=read`, because its body cannot become a separate function. Fix: lock the functions that it calls.",
  },
  {
    title: "a boolean in upper case",
    source: onMethod("@redisLock businessFlag=pay watchdog=«TRUE»"),
    code: "LW1106",
    message: "Expected `watchdog` to be `true` or `false`, got `TRUE`.",
  },
  {
    title: "a key type in lower case",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=«class» fieldName=id"),
    code: "LW1107",
    message: `${KEY_TYPES}, got \`class\`. Did you mean \`CLASS\`?`,
  },
  {
    title: "a typo in a key type",
    source: onMethod("@redisLock businessFlag=pay keyName=orderNo keyType=«VALEU»"),
    code: "LW1107",
    message: `${KEY_TYPES}, got \`VALEU\`.`,
  },
  {
    title: "an unknown key type",
    source: onMethod("@redisLock businessFlag=pay keyName=orderNo keyType=«XML»"),
    code: "LW1107",
    message: `${KEY_TYPES}, got \`XML\`.`,
  },
  {
    title: "a call as `onFailure`",
    source: onMethod("@redisLock businessFlag=pay onFailure=«Busy()»"),
    code: "LW1108",
    message: "Expected `onFailure` to be `throw`, `skip`, or the name of an error class, got `Busy()`.",
  },
  ...["ignore", "Skip", "retry"].map((action) => ({
    title: `onFailure=${action}, which is not in scope`,
    source: onMethod(`@redisLock businessFlag=pay onFailure=«${action}»`),
    code: "LW1108",
    message: `Expected \`onFailure\` to be \`throw\`, \`skip\`, or the name of an error class, got \`${action}\`.${action === "Skip" ? " Did you mean `skip`?" : ""}`,
  })),
  {
    title: "an expression as `onFailure`",
    source: onMethod('@redisLock businessFlag=pay onFailure="«new Busy»"'),
    code: "LW1108",
    message: "Expected `onFailure` to be `throw`, `skip`, or the name of an error class, got `new Busy`.",
  },
  {
    title: "a generic type as `keyClass`",
    source: onMethod(
      "@redisLock businessFlag=pay keyName=order keyType=CLASS fieldName=id keyClass=«Page<Order>»",
    ),
    code: "LW1109",
    message: "Expected `keyClass` to be the name of a class or an interface, got `Page<Order>`.",
  },
];
