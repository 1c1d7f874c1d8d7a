// DisposableStack and AsyncDisposableStack (ECMA-262 27.3, 27.4), SuppressedError (20.5.8).
// A resource is [kind, value, method]: 0 a method of the value, 1 called with the value, 2 called with nothing,
// 3 a method of the value that does not wait where one that waits was asked for, 4 nothing to do but wait,
// 5 a method of the value that waits.

function SuppressedError_(error, suppressed, message) {
  const e = MakeError(new.target, $activeFunction(), $$SUPPRESSED_ERROR_PROTO, message, undefined);
  $hidden(e, "error", error);
  $hidden(e, "suppressed", suppressed);
  return e;
}

function Suppressed(error, suppressed) {
  const e = $errorNew($$SUPPRESSED_ERROR_PROTO);
  $errorStack(e);
  $hidden(e, "error", error);
  $hidden(e, "suppressed", suppressed);
  return e;
}

function DisposeMethod(value, key) {
  const method = value[key];
  if (method === undefined || method === null) return undefined;
  if (!$isCallable(method)) $typeError($shown(method) + " is not a function");
  return method;
}

// The list of resources of a stack that is still open.
function OpenStack(stack, tag, name) {
  if ($recordTag(stack) !== tag) $typeError(name + " called on incompatible receiver " + $shown(stack));
  if ($recordGet(stack, 0)) $referenceError("The stack is disposed of already");
  return $recordGet(stack, 1);
}

function RequireStack(stack, tag, name) {
  if ($recordTag(stack) !== tag) $typeError(name + " called on incompatible receiver " + $shown(stack));
  return $recordGet(stack, 0);
}

// Closes a stack; gives what was in it.
function CloseStack(stack) {
  const list = $recordGet(stack, 1);
  $recordSet(stack, 0, true);
  $recordSet(stack, 1, undefined);
  return list;
}

function UseResource(list, value) {
  if (value === undefined || value === null) return;
  if (!$isObject(value)) $typeError($shown(value) + " is not an object");
  const method = DisposeMethod(value, $$SYM_DISPOSE);
  if (method === undefined) $typeError("The value has no method Symbol.dispose");
  $push(list, [0, value, method]);
}

function UseResourceAsync(list, value) {
  if (value === undefined || value === null) {
    $push(list, [4, undefined, undefined]);
    return;
  }
  if (!$isObject(value)) $typeError($shown(value) + " is not an object");
  let kind = 5;
  let method = DisposeMethod(value, $$SYM_ASYNC_DISPOSE);
  if (method === undefined) {
    kind = 3;
    method = DisposeMethod(value, $$SYM_DISPOSE);
  }
  if (method === undefined) $typeError("The value has no method Symbol.asyncDispose or Symbol.dispose");
  $push(list, [kind, value, method]);
}

function RunDisposer(resource) {
  if (resource[0] === 1) return $call(resource[2], undefined, resource[1]);
  if (resource[0] === 2) return $call(resource[2], undefined);
  return $call(resource[2], resource[1]);
}

// `failed`: what used the resources ended with this error.
function DisposeList(list, failed, error) {
  for (let i = list.length - 1; i >= 0; i--) {
    try {
      RunDisposer(list[i]);
    } catch (e) {
      error = failed ? Suppressed(e, error) : e;
      failed = true;
    }
  }
  if (failed) throw error;
}

async function DisposeListAsync(list, failed, error) {
  let needs = false, waited = false;
  for (let i = list.length - 1; i >= 0; i--) {
    const resource = list[i];
    if (resource[0] === 4) { needs = true; continue; }
    try {
      if (resource[0] === 3) {
        let threw = false, reason;
        try { RunDisposer(resource); } catch (e) { threw = true; reason = e; }
        waited = true;
        await undefined;
        if (threw) throw reason;
      } else if (resource[0] === 0) {
        if (needs && !waited) { needs = false; await undefined; }
        RunDisposer(resource);
      } else {
        const result = RunDisposer(resource);
        waited = true;
        await result;
      }
    } catch (e) {
      error = failed ? Suppressed(e, error) : e;
      failed = true;
    }
  }
  if (needs && !waited) await undefined;
  if (failed) throw error;
}

// For the end of a scope: a promise to wait for, undefined when there is nothing to dispose of.
function DisposeScopeAsync(list, failed, error) {
  if (list.length > 0) return DisposeListAsync(list, failed, error);
  if (failed) throw error;
  return undefined;
}

async function Rejected(error) { throw error; }

function DisposeStackAsync(stack) {
  let list = [];
  try {
    if (!RequireStack(stack, 917, "AsyncDisposableStack.prototype.disposeAsync")) list = CloseStack(stack);
  } catch (e) { return Rejected(e); }
  return DisposeListAsync(list, false, undefined);
}

function DisposableStack_() {
  if (new.target === undefined) $typeError("Constructor DisposableStack requires 'new'");
  return $record(916, ProtoFor(new.target, $$DISPOSABLE_STACK_PROTO), false, []);
}

function AsyncDisposableStack_() {
  if (new.target === undefined) $typeError("Constructor AsyncDisposableStack requires 'new'");
  return $record(917, ProtoFor(new.target, $$ASYNC_DISPOSABLE_STACK_PROTO), false, []);
}

const DisposableStackMethods = {
  get disposed() { return RequireStack(this, 916, "get DisposableStack.prototype.disposed"); },
  dispose() {
    if (RequireStack(this, 916, "DisposableStack.prototype.dispose")) return undefined;
    DisposeList(CloseStack(this), false, undefined);
    return undefined;
  },
  use(value) {
    UseResource(OpenStack(this, 916, "DisposableStack.prototype.use"), value);
    return value;
  },
  adopt(value, onDispose) {
    const list = OpenStack(this, 916, "DisposableStack.prototype.adopt");
    NeedFunction(onDispose);
    $push(list, [1, value, onDispose]);
    return value;
  },
  defer(onDispose) {
    const list = OpenStack(this, 916, "DisposableStack.prototype.defer");
    NeedFunction(onDispose);
    $push(list, [2, undefined, onDispose]);
    return undefined;
  },
  move() {
    OpenStack(this, 916, "DisposableStack.prototype.move");
    return $record(916, $$DISPOSABLE_STACK_PROTO, false, CloseStack(this));
  },
};

const AsyncDisposableStackMethods = {
  get disposed() { return RequireStack(this, 917, "get AsyncDisposableStack.prototype.disposed"); },
  disposeAsync() { return DisposeStackAsync(this); },
  use(value) {
    UseResourceAsync(OpenStack(this, 917, "AsyncDisposableStack.prototype.use"), value);
    return value;
  },
  adopt(value, onDisposeAsync) {
    const list = OpenStack(this, 917, "AsyncDisposableStack.prototype.adopt");
    NeedFunction(onDisposeAsync);
    $push(list, [1, value, onDisposeAsync]);
    return value;
  },
  defer(onDisposeAsync) {
    const list = OpenStack(this, 917, "AsyncDisposableStack.prototype.defer");
    NeedFunction(onDisposeAsync);
    $push(list, [2, undefined, onDisposeAsync]);
    return undefined;
  },
  move() {
    OpenStack(this, 917, "AsyncDisposableStack.prototype.move");
    return $record(917, $$ASYNC_DISPOSABLE_STACK_PROTO, false, CloseStack(this));
  },
};

const IteratorDispose = {
  [$$SYM_DISPOSE]() {
    const method = DisposeMethod(this, "return");
    if (method !== undefined) $call(method, this);
    return undefined;
  },
};

async function AsyncIteratorDispose(iterator) {
  const method = DisposeMethod(iterator, "return");
  if (method !== undefined) await $call(method, iterator);
}

const AsyncIteratorDisposeMethods = {
  [$$SYM_ASYNC_DISPOSE]() { return AsyncIteratorDispose(this); },
};
