// Promise: resolution, reactions, combinators (ECMA-262 27.2).

function Promise_(executor) {
  if (new.target === undefined) $typeError("Promise constructor cannot be invoked without 'new'");
  if (!$isCallable(executor)) $typeError("Promise resolver " + $shown(executor) + " is not a function");
  const promise = $promiseNew(ProtoFor(new.target, $$PROMISE_PROTO));
  const fns = ResolvingFunctions(promise);
  try { $call(executor, undefined, fns[0], fns[1]); } catch (e) { $call(fns[1], undefined, e); }
  return promise;
}

function ResolvingFunctions(promise) {
  let done = false;
  return [
    $anonymous((resolution) => { if (done) return undefined; done = true; PromiseResolve(promise, resolution); return undefined; }),
    $anonymous((reason) => { if (done) return undefined; done = true; PromiseReject(promise, reason); return undefined; }),
  ];
}

function PromiseReject(promise, reason) { $settle(promise, 2, reason); }

function PromiseResolve(promise, resolution) {
  if (resolution === promise) { $settle(promise, 2, $makeTypeError("Chaining cycle detected for promise")); return; }
  if (!$isObject(resolution)) { $settle(promise, 1, resolution); return; }
  let then;
  try { then = resolution.then; } catch (e) { $settle(promise, 2, e); return; }
  if (!$isCallable(then)) { $settle(promise, 1, resolution); return; }
  $enqueueThenable(promise, resolution, then);
}

function PromiseThenableJob(promise, thenable, then) {
  const fns = ResolvingFunctions(promise);
  try { $call(then, thenable, fns[0], fns[1]); } catch (e) { $call(fns[1], undefined, e); }
}

// A capability is undefined or [promise, resolve, reject].
function PromiseReactionJob(capability, handler, argument, rejected) {
  let result, failed = false;
  if (handler === undefined) { failed = rejected; result = argument; }
  else { try { result = $call(handler, undefined, argument); } catch (e) { failed = true; result = e; } }
  if (capability === undefined) return;
  $call(failed ? capability[2] : capability[1], undefined, result);
}

function NewCapability(C) {
  if (C === $$PROMISE) {
    const promise = $promiseNew($$PROMISE_PROTO);
    const fns = ResolvingFunctions(promise);
    return [promise, fns[0], fns[1]];
  }
  if (!$isConstructor(C)) $typeError($shown(C) + " is not a constructor");
  const capability = [undefined, undefined, undefined];
  const executor = $anonymous((resolve, reject) => {
    if (capability[1] !== undefined || capability[2] !== undefined) $typeError("Promise executor has already been invoked with non-undefined arguments");
    capability[1] = resolve;
    capability[2] = reject;
    return undefined;
  });
  const promise = $construct(C, C, [executor]);
  if (!$isCallable(capability[1]) || !$isCallable(capability[2])) $typeError("Promise resolve or reject function is not callable");
  capability[0] = promise;
  return capability;
}

function PromiseResolveIntrinsic(x) { return PromiseResolveWith($$PROMISE, x); }

function PromiseResolveWith(C, x) {
  if ($isPromise(x)) {
    const constructor = x.constructor;
    if (constructor === C) return x;
  }
  const capability = NewCapability(C);
  $call(capability[1], undefined, x);
  return capability[0];
}

function PerformThen(promise, onFulfilled, onRejected, capability) {
  $react(promise, capability, $isCallable(onFulfilled) ? onFulfilled : undefined, $isCallable(onRejected) ? onRejected : undefined);
  return capability === undefined ? undefined : capability[0];
}

const PromisePrototype = {
  catch(onRejected) { return this.then(undefined, onRejected); },
  finally(onFinally) {
    if (!$isObject(this)) $typeError("Promise.prototype.finally called on a non-object");
    const C = SpeciesConstructor(this, $$PROMISE);
    let thenFinally = onFinally, catchFinally = onFinally;
    if ($isCallable(onFinally)) {
      thenFinally = $anonymous((value) => PromiseResolveWith(C, $call(onFinally, undefined)).then($anonymous(() => value)));
      catchFinally = $anonymous((reason) => PromiseResolveWith(C, $call(onFinally, undefined)).then($anonymous(() => { throw reason; })));
    }
    return this.then(thenFinally, catchFinally);
  },
  then(onFulfilled, onRejected) {
    if (!$isPromise(this)) $typeError("Method Promise.prototype.then called on incompatible receiver " + $shown(this));
    const C = SpeciesConstructor(this, $$PROMISE);
    return PerformThen(this, onFulfilled, onRejected, NewCapability(C));
  },
};

// kind: 0 all, 1 allSettled, 2 any, 3 race
function Combine(C, iterable, kind) {
  const capability = NewCapability(C);
  let it, closed = false;
  try {
    const resolve = C.resolve;
    if (!$isCallable(resolve)) $typeError("Promise resolve or reject function is not callable");
    it = OpenIterator(iterable, iterable[$$SYM_ITERATOR]);
    const values = [];
    let remaining = 1;
    let index = 0;
    const finish = () => {
      if (kind === 2) {
        const error = $errorNew($$AGGREGATE_ERROR_PROTO);
        $errorMessage(error, "All promises were rejected");
        $hidden(error, "errors", values);
        $errorStack(error);
        $call(capability[2], undefined, error);
      } else $call(capability[1], undefined, values);
    };
    while (true) {
      let step, value;
      closed = true;
      step = $call(it[1], it[0]);
      if (!$isObject(step)) $typeError("Iterator result is not an object");
      if (step.done) {
        if (kind !== 3) {
          remaining--;
          if (remaining === 0) {
            if (kind === 2) {
              const error = $errorNew($$AGGREGATE_ERROR_PROTO);
              $errorMessage(error, "All promises were rejected");
              $hidden(error, "errors", values);
              $errorStack(error);
              throw error;
            }
            finish();
          }
        }
        return capability[0];
      }
      value = step.value;
      closed = false;
      const next = $call(resolve, C, value);
      if (kind === 3) { next.then(capability[1], capability[2]); continue; }
      const i = index++;
      $push(values, undefined);
      let called = false;
      const slot = (wrap) => $anonymous((x) => {
        if (called) return undefined;
        called = true;
        values[i] = wrap === undefined ? x : wrap(x);
        remaining--;
        if (remaining === 0) finish();
        return undefined;
      });
      remaining++;
      if (kind === 0) next.then(slot(), capability[2]);
      else if (kind === 2) next.then(capability[1], slot());
      else next.then(slot(SettledFulfilled), slot(SettledRejected));
    }
  } catch (e) {
    if (it !== undefined && !closed) IteratorCloseSilently(it[0], it[1]);
    $call(capability[2], undefined, e);
    return capability[0];
  }
}

function SettledFulfilled(value) {
  const o = $create($$OBJECT_PROTO);
  $createData(o, "status", "fulfilled");
  $createData(o, "value", value);
  return o;
}

function SettledRejected(reason) {
  const o = $create($$OBJECT_PROTO);
  $createData(o, "status", "rejected");
  $createData(o, "reason", reason);
  return o;
}

const PromiseStatics = {
  all(iterable) { return Combine(this, iterable, 0); },
  allSettled(iterable) { return Combine(this, iterable, 1); },
  any(iterable) { return Combine(this, iterable, 2); },
  race(iterable) { return Combine(this, iterable, 3); },
  reject(r) {
    const capability = NewCapability(this);
    $call(capability[2], undefined, r);
    return capability[0];
  },
  resolve(x) {
    if (!$isObject(this)) $typeError("PromiseResolve called on non-object");
    return PromiseResolveWith(this, x);
  },
  try(callbackfn) {
    if (!$isObject(this)) $typeError("Promise.try called on non-object");
    const args = [];
    for (let i = 1; i < arguments.length; i++) $push(args, arguments[i]);
    const capability = NewCapability(this);
    let value;
    try { value = $callArray(callbackfn, undefined, args); } catch (e) { $call(capability[2], undefined, e); return capability[0]; }
    $call(capability[1], undefined, value);
    return capability[0];
  },
  withResolvers() {
    const capability = NewCapability(this);
    const o = $create($$OBJECT_PROTO);
    $createData(o, "promise", capability[0]);
    $createData(o, "resolve", capability[1]);
    $createData(o, "reject", capability[2]);
    return o;
  },
  get [$$SYM_SPECIES]() { return this; },
};
