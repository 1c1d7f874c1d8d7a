// `node:async_hooks`: values that follow asynchronous calls. The context is a map from each AsyncLocalStorage to its value, which is
// never changed, only replaced. Callbacks of timers, ticks, calls and `then` restore the context in which they were registered. The
// engine has no hook for `await`, but before an `await` of a promise it reads the promise's `constructor`: that accessor registers a
// reaction just before that of the awaiting function, which restores the context. Whatever else is awaited becomes a new promise,
// which the engine's hook reports.
0,function (own, _native, captured) {
  'use strict';
  const { Map, Object, Promise, WeakMap, WeakSet } = captured.globals;
  const { apply } = captured;
  const { checks, unavailable } = captured.part('node_errors');
  const [INIT, BEFORE, , RESOLVE] = [0, 1, 2, 3];

  let current;
  let active = false;
  const within = (context, fn, self, args) => {
    const before = current;
    current = context;
    try { return apply(fn, self, args); } finally { current = before; }
  };
  const bind = (fn) => {
    const context = current;
    return (...args) => { current = context; return fn(...args); };
  };
  const activate = () => {
    if (active) return;
    active = true;
    const { prototype } = Promise;
    const { then } = prototype;
    const contexts = new WeakMap();
    const reactions = new WeakSet();
    const thenables = new WeakSet();
    let isReaction = false;
    let skipped;
    let last;
    // Reactions of a promise run one after the other: this one restores the context for the next.
    const restoreFor = (promise, context) => {
      const restore = () => { current = context; };
      isReaction = true;
      skipped = promise;
      try { apply(then, promise, [restore, restore]); } finally { isReaction = false; skipped = undefined; }
    };
    own.watchPromises((kind, promise) => {
      if (kind === INIT) {
        if (isReaction) { reactions.add(promise); return; }
        last = promise;
        if (current !== undefined) contexts.set(promise, current);
      } else if (kind === BEFORE) {
        thenables.add(promise);
        current = contexts.get(promise);
      } else if (kind === RESOLVE && !reactions.has(promise) && (promise === last || thenables.has(promise))) {
        restoreFor(promise, contexts.get(promise));
      }
    });
    Object.defineProperty(prototype, 'constructor', {
      configurable: true,
      enumerable: false,
      get() {
        if (this === skipped) skipped = undefined;
        else if (this !== prototype && own.isPromise(this)) restoreFor(this, current);
        return Promise;
      },
      set(value) { Object.defineProperty(this, 'constructor', { value, writable: true, enumerable: this !== prototype, configurable: true }); },
    });
    const bound = (callback) => (typeof callback === 'function' ? bind(callback) : callback);
    Object.defineProperty(prototype, 'then', {
      value: { then(onFulfilled, onRejected) {
        skipped = this;
        try { return apply(then, this, [bound(onFulfilled), bound(onRejected)]); } finally { skipped = undefined; }
      } }.then,
      writable: true, configurable: true, enumerable: false,
    });
    captured.tracedPromise = Promise;
    captured.bindContext = bind;
    captured.clearContext = () => { current = undefined; };
  };

  class AsyncLocalStorage {
    constructor() { activate(); }
    getStore() { return current?.get(this); }
    run(store, fn, ...args) { return within(new Map(current).set(this, store), fn, undefined, args); }
    exit(fn, ...args) { return this.run(undefined, fn, ...args); }
    enterWith(store) { current = new Map(current).set(this, store); }
    disable() {
      current = new Map(current);
      current.delete(this);
    }
    static bind(fn) { return AsyncResource.bind(fn); }
    static snapshot() {
      const context = current;
      return (fn, ...args) => within(context, fn, undefined, args);
    }
  }
  let ids = 1;
  class AsyncResource {
    #id = ++ids;
    #context = current;
    constructor(type) { checks.string(type, 'type'); this.type = type; }
    runInAsyncScope(fn, self, ...args) { return within(this.#context, fn, self, args); }
    emitDestroy() { return this; }
    asyncId() { return this.#id; }
    triggerAsyncId() { return 1; }
    bind(fn, self = undefined) {
      checks.function(fn, 'fn');
      const resource = this;
      return function (...args) { return resource.runInAsyncScope(fn, self ?? this, ...args); };
    }
    static bind(fn, type = undefined, self = undefined) {
      checks.function(fn, 'fn');
      return new AsyncResource(type ?? (fn.name || 'bound-anonymous-fn')).bind(fn, self);
    }
  }
  const asyncHooks = {
    AsyncResource, AsyncLocalStorage, executionAsyncId: () => 1, triggerAsyncId: () => 0, executionAsyncResource: () => ({}),
    createHook: () => { throw unavailable('createHook', 'the engine does not report asynchronous resources; AsyncLocalStorage is available'); },
  };
  return { asyncHooks };
}
