/**
 * Names that other libraries and languages have for an attribute. They are too different to be typing mistakes. Lower case, and without `_`
 * and `-`.
 */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  namespace: "businessFlag",
  prefix: "businessFlag",
  name: "businessFlag",
  param: "keyName",
  condition: "when",
  ttl: "lockTime",
  expire: "lockTime",
  expires: "lockTime",
  expiry: "lockTime",
  expiration: "lockTime",
  duration: "lockTime",
  lease: "lockTime",
  leasetime: "lockTime",
  lockatmostfor: "lockTime",
  lockatleastfor: "lockAtLeast",
  retry: "retryTimes",
  retrycount: "retryTimes",
  attempts: "retryTimes",
  retrydelay: "waitTime",
  retryinterval: "waitTime",
  maxwait: "wait",
  waitfor: "wait",
  waittimeout: "wait",
  acquiretimeout: "wait",
  autoextend: "watchdog",
  renew: "watchdog",
  limit: "permits",
};

export function attributeCalled(name: string): string | undefined {
  const plain = name.replaceAll(/[_-]/g, "").toLowerCase();
  return Object.hasOwn(OTHER_NAMES, plain) ? OTHER_NAMES[plain] : undefined;
}
