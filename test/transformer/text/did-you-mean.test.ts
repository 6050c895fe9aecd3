import test from "ava";
import { didYouMean } from "../../../transformer/text/did-you-mean";

test("the nearest of several near names is suggested, wherever it stands", (t) => {
  t.is(didYouMean("retryTime", ["retryTimer", "retryTime5s", "retryTimes"]), " Did you mean `retryTimer`?");
  t.is(didYouMean("waitTme", ["lockTime", "waitTime", "waitTimes"]), " Did you mean `waitTime`?");
  t.is(didYouMean("waitTme", ["waitTimes", "waitTime", "lockTime"]), " Did you mean `waitTime`?");
});

test("capital letters make no difference", (t) => {
  t.is(didYouMean("LOCKTIME", ["lockTime"]), " Did you mean `lockTime`?");
});

test("a name is near up to a third of the letters of the longer one", (t) => {
  t.is(didYouMean("abcdxx", ["abcdef"]), " Did you mean `abcdef`?");
  t.is(didYouMean("abcxxx", ["abcdef"]), "");
  t.is(didYouMean("abcd", ["abcdef"]), " Did you mean `abcdef`?");
  t.is(didYouMean("abcx", ["abcdef"]), "");
});

test("a short name is near with one other letter", (t) => {
  t.is(didYouMean("ax", ["ab"]), " Did you mean `ab`?");
  t.is(didYouMean("xy", ["ab"]), "");
});

test("nothing is suggested where there are no names", (t) => {
  t.is(didYouMean("lockTime", []), "");
});
