import { onMethod, type Row } from "./row";

// The problems `LW12..`.

const PARAMETERS = "It has `orderNo`, `order`, `tenant`, `first`.";

export const KEYS: readonly Row[] = [
  ...[
    ["${orderNo}", "orderNo"],
    ["#order.id", "order.id"],
    ["#{orderNo}", "orderNo"],
    ["{orderNo}", "orderNo"],
    [":orderNo", "orderNo"],
  ].map(([key = "", meant = ""]) => ({
    title: `keyName=${key}, a parameter as other libraries write it`,
    source: onMethod(`@redisLock businessFlag=pay keyName=«${key}»`),
    code: "LW1201",
    message: `Expected a parameter or a path such as \`order.user.id\`, got \`${key}\`. Did you mean \`${meant}\`?`,
  })),
  ...["order.", ".order", "order..id", "order[id]", "2", "orderNo!", "orderNo+1", "f(order)"].map((key) => ({
    title: `keyName=${key}`,
    source: onMethod(`@redisLock businessFlag=pay keyName=«${key}»`),
    code: "LW1201",
    message: `Expected a parameter or a path such as \`order.user.id\`, got \`${key}\`. Fix: put other expressions in quotes.`,
  })),
  {
    title: "a parameter in the wrong case",
    source: onMethod("@redisLock businessFlag=pay keyName=«orderNO»"),
    code: "LW1202",
    message: "The function has no parameter `orderNO`. Did you mean `orderNo`?",
  },
  {
    title: "a path that does not begin with a parameter, at its root",
    source: onMethod("@redisLock businessFlag=pay keyName=orderNo,«invoice».id"),
    code: "LW1202",
    message: `The function has no parameter \`invoice\`. ${PARAMETERS}`,
  },
  {
    title: "the outer name of a destructured parameter",
    source: onMethod("@redisLock businessFlag=pay keyName=«lines»"),
    code: "LW1202",
    message: "The function has no parameter `lines`. It has `orderNo`, `order`, `tenant`, `first`.",
  },
  {
    title: "a parameter of a function that has none",
    source: "/** @redisLock businessFlag=pay keyName=«orderNo» */\nexport async function pay() {}",
    code: "LW1202",
    message: "The function has no parameter `orderNo`. It has none.",
  },
  {
    title: "a variable of the module without quotes",
    source:
      "const shop = 7;\n/** @redisLock businessFlag=pay keyName=«shop» */\nexport async function pay(this: Till) {}",
    code: "LW1202",
    message:
      'The function has no parameter `shop`. It has none. For a name from outside of the function, use quotes: `"shop"`.',
  },
  ...[
    ["does not parse", "order."],
    ["is two statements", "order]; work(); [order"],
    ["is two expressions", "orderNo, order.id"],
    ["ends in a comma", "orderNo,"],
    ["is a spread", "...order.lines"],
    ["is only a comma", ","],
    ["is empty", ""],
    ["closes the brackets around it", "orderNo]); evil([order"],
    ["has a comment in it", "orderNo // + order.id"],
    ["opens a comment", "orderNo /* + order.id"],
    ["is a statement", "return orderNo"],
    ["has an operator between brackets", "orderNo] + [order"],
    ["is a declaration", "const x = 1"],
    ["yields", "yield"],
    ["yields a value", "order ?? (yield orderNo)"],
  ].map(([what = "", expression = ""]) => ({
    title: `a quoted key that ${what}`,
    source: onMethod(`@redisLock businessFlag=pay keyName="«${expression}»"`),
    code: "LW1203",
    message: `Expected an expression between the quotes, got \`${expression}\`.`,
  })),
  {
    title: "a quoted key whose comment swallows the next line",
    source: onMethod('@redisLock businessFlag=pay keyName="«orderNo // the number\n   *   + order.id»"'),
    code: "LW1203",
    message: "Expected an expression between the quotes, got `orderNo // the number\n       + order.id`.",
  },
  {
    title: "a field that is a call",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=CLASS fieldName=«getId()»"),
    code: "LW1204",
    message: "Expected `fieldName` to be a field or a path such as `user.id`, got `getId()`.",
  },
  {
    title: "one bad field of two",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=JSON fieldName=id,«user-id»"),
    code: "LW1204",
    message: "Expected `fieldName` to be a field or a path such as `user.id`, got `user-id`.",
  },
  {
    title: "`fieldName` without `keyType`",
    source: onMethod("@redisLock businessFlag=pay keyName=order «fieldName»=id"),
    code: "LW1205",
    message: "`fieldName` needs `keyType=CLASS` or `keyType=JSON`.",
  },
  {
    title: "`fieldName` with keyType=VALUE",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=VALUE «fieldName»=id"),
    code: "LW1205",
    message: "`fieldName` needs `keyType=CLASS` or `keyType=JSON`.",
  },
  ...["CLASS", "JSON"].map((type) => ({
    title: `keyType=${type} without \`fieldName\``,
    source: onMethod(`@redisLock businessFlag=pay keyName=order keyType=«${type}»`),
    code: "LW1206",
    message: `\`keyType=${type}\` needs \`fieldName=\`, the field that identifies the object.`,
  })),
  ...["keyType=JSON", "keyClass=Order", "fieldName=id", "each=true"].map((attribute) => {
    const [name = "", value = ""] = attribute.split("=");
    return {
      title: `\`${name}\` without \`keyName\``,
      source: onMethod(`@redisLock businessFlag=pay «${name}»=${value}`),
      code: "LW1207",
      message: `\`${name}\` needs \`keyName=\`, the parameter that it applies to.`,
    };
  }),
  {
    title: "two values of `keyName` with keyType=CLASS",
    source: onMethod("@redisLock businessFlag=pay keyName=order,«orderNo» keyType=CLASS fieldName=id"),
    code: "LW1208",
    message: "`keyType=CLASS` takes one `keyName`. Fix: list several fields of it in `fieldName=a,b`.",
  },
  {
    title: "`keyClass` with keyType=VALUE",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=VALUE «keyClass»=Order"),
    code: "LW1209",
    message: "`keyClass` needs `keyType=CLASS` or `keyType=JSON`.",
  },
  {
    title: "a whole key together with a flag",
    source: onMethod('@redisLock «businessFlag=pay» key="pay:${orderNo}"'),
    code: "LW1130",
    message: "`businessFlag` and `key` cannot be combined: `key` is the whole key. Fix: remove one of them.",
  },
  {
    title: "a whole key together with parts of one",
    source: onMethod('@redisLock key="pay:${orderNo}" «keyName=tenant»'),
    code: "LW1130",
    message: "`keyName` and `key` cannot be combined: `key` is the whole key. Fix: remove one of them.",
  },
  {
    title: "a whole key together with fields",
    source: onMethod('@redisLock key="pay:${orderNo}" «keyType=CLASS» keyClass=Order fieldName=id'),
    code: "LW1130",
    message: "`keyType` and `key` cannot be combined: `key` is the whole key. Fix: remove one of them.",
    also: ["LW1130", "LW1130"],
  },
  {
    title: "two whole keys",
    source: onMethod("@redisLock key=«pay,order»"),
    code: "LW1103",
    message: "Expected one value for `key`, got a list.",
  },
  {
    title: "an unknown parameter in a whole key",
    source: onMethod('@redisLock key="pay:${tenant}:${«ordrNo».length}"'),
    code: "LW1202",
    message: "The function has no parameter `ordrNo`. Did you mean `orderNo`?",
  },
  {
    title: "an unclosed brace in a whole key",
    source: onMethod('@redisLock key="pay:${tenant}:«${orderNo»"'),
    code: "LW1210",
    message: "This `${` is not closed. Expected a parameter or a path, and `}`.",
  },
  {
    title: "a list in a whole key",
    source: onMethod('@redisLock key="pay:${«tenant,orderNo»}"'),
    code: "LW1211",
    message:
      "Expected a parameter, a path such as `order.user.id`, or another expression in `${...}`, got `tenant,orderNo`. Fix: for several values, write several `${...}` with text between them.",
  },
  {
    title: "empty braces in a whole key",
    source: onMethod('@redisLock key="pay:${«»}"'),
    code: "LW1211",
    message:
      "Expected a parameter, a path such as `order.user.id`, or another expression in `${...}`, got ``. Fix: for several values, write several `${...}` with text between them.",
  },
  {
    title: "two values in a whole key without text between them",
    source: onMethod('@redisLock key="pay:${tenant}«»${orderNo}:${first}"'),
    code: "LW1212",
    message:
      'Expected text between two values, such as `:`. Without it, "1" and "23" make the same key as "12" and "3".',
  },
  {
    title: "an empty whole key",
    source: onMethod('@redisLock key="«»"'),
    code: "LW1213",
    message: "Expected `key` to be printable, non-empty text on one line, got ``.",
  },
  {
    title: "a whole key over two lines",
    source: onMethod('@redisLock key="«pay:\n   *   ${orderNo}»"'),
    code: "LW1213",
    message: "Expected `key` to be printable, non-empty text on one line, got `pay:\n       ${orderNo}`.",
  },
  {
    title: "a whole key with the prefix of Lockweave's queues",
    source: onMethod('@redisLock key="«lockweave:»2:queue:${orderNo}"'),
    code: "LW1214",
    message: "A key must not begin with `lockweave:`. Lockweave keeps its queues there.",
  },
];
