// The result of a program whose top level awaits, as a promise: the program then ends with its top level, whatever is pending.
function TopLevelResult(value) {
  if ($isPromise(value)) return value;
  const promise = $promiseNew($$PROMISE_PROTO);
  $settle(promise, 1, value);
  return promise;
}
