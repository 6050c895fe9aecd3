import test from "ava";
import { didYouMean } from "../../../transformer/text/did-you-mean";

test("suggests the nearest of several similar names, in any order of the list", (t) => {
  t.is(didYouMean("retryTime", ["retryTimer", "retryTime5s", "retryTimes"]), " Did you mean `retryTimer`?");
  t.is(didYouMean("waitTme", ["lockTime", "waitTime", "waitTimes"]), " Did you mean `waitTime`?");
  t.is(didYouMean("waitTme", ["waitTimes", "waitTime", "lockTime"]), " Did you mean `waitTime`?");
});

test("ignores the case of letters", (t) => {
  t.is(didYouMean("LOCKTIME", ["lockTime"]), " Did you mean `lockTime`?");
});

test("suggests a name if at most a third of the longer name's letters differ", (t) => {
  t.is(didYouMean("abcdxx", ["abcdef"]), " Did you mean `abcdef`?");
  t.is(didYouMean("abcxxx", ["abcdef"]), "");
  t.is(didYouMean("abcd", ["abcdef"]), " Did you mean `abcdef`?");
  t.is(didYouMean("abcx", ["abcdef"]), "");
});

test("suggests a short name if one letter differs", (t) => {
  t.is(didYouMean("ax", ["ab"]), " Did you mean `ab`?");
  t.is(didYouMean("xy", ["ab"]), "");
});

test("suggests nothing if there are no names", (t) => {
  t.is(didYouMean("lockTime", []), "");
});
