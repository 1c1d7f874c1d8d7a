// Generators, async functions, async generators, delegation.

const GeneratorPrototype = {
  next(value) {
    const g = $generatorFor(this, "next");
    return $isDone(g) ? $iterResult(undefined, true) : $resume(g, 0, value);
  },
  return(value) {
    const g = $generatorFor(this, "return");
    return $isDone(g) ? $iterResult(value, true) : $resume(g, 2, value);
  },
  throw(exception) {
    const g = $generatorFor(this, "throw");
    if ($isDone(g)) throw exception;
    return $resume(g, 1, exception);
  },
};

// One step of `yield*`; null when a return finds no method.
function YieldStep(iterator, next, mode, value) {
  if (mode === 0) return $call(next, iterator, value);
  if (mode === 2) {
    const method = iterator.return;
    return method === undefined || method === null ? null : $call(method, iterator, value);
  }
  const method = iterator.throw;
  if (method !== undefined && method !== null) return $call(method, iterator, value);
  IteratorClose(iterator, next);
  $typeError("The iterator does not provide a 'throw' method");
}

// The same for async generators. Mode 3 tells the caller that the iterator is being closed.
function AsyncYieldStep(iterator, next, mode, value) {
  if (mode === 0) return $call(next, iterator, value);
  if (mode === 2) {
    const method = iterator.return;
    return method === undefined || method === null ? null : $call(method, iterator, value);
  }
  const method = iterator.throw;
  if (method !== undefined && method !== null) return $call(method, iterator, value);
  return AsyncCloseThenThrow(iterator);
}

async function AsyncCloseThenThrow(iterator) {
  const method = iterator.return;
  if (method !== undefined && method !== null) {
    const result = await $call(method, iterator);
    if (!$isObject(result)) $typeError("Iterator result is not an object");
  }
  $typeError("The iterator does not provide a 'throw' method");
}

function AsyncReturned(promise, value) {
  PromiseResolve(promise, value);
  return promise;
}

// Async generators: requests wait in a queue of [mode, value, promise] while the body runs or waits.

function AsyncGeneratorEnqueue(generator, mode, value) {
  const promise = $promiseNew();
  const g = $asyncGenerator(generator);
  if (g === undefined) {
    PromiseReject(promise, $makeTypeError("next method called on incompatible receiver " + $shown(generator)));
    return promise;
  }
  const queue = $asyncQueue(g);
  $push(queue, [mode, value, promise]);
  if (!$isRunning(g)) AsyncGeneratorResume(g);
  return promise;
}

// Takes up the first request of a generator that is not running.
function AsyncGeneratorResume(g) {
  while (true) {
    const queue = $asyncQueue(g);
    if (queue.length === 0 || $isRunning(g)) return;
    const request = queue[0];
    const mode = request[0];
    const value = request[1];
    if ($isStart(g) && mode !== 0) $finishCoroutine(g);
    if (!$isDone(g)) { $resume(g, mode, value); return; }
    if (mode === 0) { AsyncGeneratorSettle(g, $iterResult(undefined, true), false); continue; }
    if (mode === 1) { AsyncGeneratorSettle(g, value, true); continue; }
    $setAwaitingReturn(g, true);
    AsyncGeneratorAwaitReturn(g, value);
    return;
  }
}

async function AsyncGeneratorAwaitReturn(g, value) {
  let result, failed = false;
  try { result = await value; } catch (e) { failed = true; result = e; }
  $setAwaitingReturn(g, false);
  AsyncGeneratorSettle(g, failed ? result : $iterResult(result, true), failed);
  AsyncGeneratorResume(g);
}

// Answers the first request.
function AsyncGeneratorSettle(g, value, failed) {
  const request = $shift($asyncQueue(g));
  if (failed) PromiseReject(request[2], value); else PromiseResolve(request[2], value);
}

function AsyncGeneratorYielded(g, value) {
  AsyncGeneratorSettle(g, $iterResult(value, false), false);
  AsyncGeneratorResume(g);
}

function AsyncGeneratorReturned(g, value) {
  AsyncGeneratorSettle(g, $iterResult(value, true), false);
  AsyncGeneratorResume(g);
}

function AsyncGeneratorThrew(g, error) {
  AsyncGeneratorSettle(g, error, true);
  AsyncGeneratorResume(g);
}

const AsyncGeneratorPrototype = {
  next(value) { return AsyncGeneratorEnqueue(this, 0, value); },
  return(value) { return AsyncGeneratorEnqueue(this, 2, value); },
  throw(exception) { return AsyncGeneratorEnqueue(this, 1, exception); },
};

// for-await and yield* over a sync iterable.

function GetAsyncIterator(value) {
  const method = value[$$SYM_ASYNC_ITERATOR];
  if (method !== undefined && method !== null) {
    const iterator = $call(method, value);
    if (!$isObject(iterator)) $typeError("Result of the Symbol.asyncIterator method is not an object");
    return iterator;
  }
  const it = OpenIterator(value, value[$$SYM_ITERATOR]);
  return $record(2, $$ASYNC_FROM_SYNC_PROTO, it[0], it[1]);
}

function AsyncFromSyncStep(result, promise, iterator, closeOnRejection) {
  let done, value, wrapper;
  try {
    if (!$isObject(result)) $typeError("Iterator result is not an object");
    done = result.done ? true : false;
    value = result.value;
  } catch (e) { PromiseReject(promise, e); return promise; }
  try {
    wrapper = PromiseResolveIntrinsic(value);
  } catch (e) {
    if (!done && closeOnRejection) IteratorCloseSilently(iterator, undefined);
    PromiseReject(promise, e);
    return promise;
  }
  const unwrap = (v) => { PromiseResolve(promise, $iterResult(v, done)); };
  const failed = (e) => {
    if (!done && closeOnRejection) IteratorCloseSilently(iterator, undefined);
    PromiseReject(promise, e);
  };
  $react(wrapper, undefined, unwrap, failed);
  return promise;
}

const AsyncFromSyncPrototype = {
  next(value) {
    const iterator = $recordGet(this, 0);
    const promise = $promiseNew();
    let result;
    try { result = arguments.length > 0 ? $call($recordGet(this, 1), iterator, value) : $call($recordGet(this, 1), iterator); } catch (e) { PromiseReject(promise, e); return promise; }
    return AsyncFromSyncStep(result, promise, iterator, true);
  },
  return(value) {
    const iterator = $recordGet(this, 0);
    const promise = $promiseNew();
    let result;
    try {
      const method = iterator.return;
      if (method === undefined || method === null) { PromiseResolve(promise, $iterResult(value, true)); return promise; }
      result = arguments.length > 0 ? $call(method, iterator, value) : $call(method, iterator);
    } catch (e) { PromiseReject(promise, e); return promise; }
    return AsyncFromSyncStep(result, promise, iterator, false);
  },
  throw(value) {
    const iterator = $recordGet(this, 0);
    const promise = $promiseNew();
    let result;
    try {
      const method = iterator.throw;
      if (method === undefined || method === null) {
        IteratorClose(iterator, undefined);
        $typeError("The iterator does not provide a 'throw' method");
      }
      result = arguments.length > 0 ? $call(method, iterator, value) : $call(method, iterator);
    } catch (e) { PromiseReject(promise, e); return promise; }
    return AsyncFromSyncStep(result, promise, iterator, true);
  },
};
