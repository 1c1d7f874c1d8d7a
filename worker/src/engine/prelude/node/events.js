// `node:events`.
0,function (_own, native, captured) {
  'use strict';
  const { Error, Object, Promise, Reflect, String, Symbol, Number } = captured.globals;
  const { argumentType, range, checks, error, abort } = captured.part('node_errors');
  const kCapture = Symbol('kCapture');
  const kShapeMode = Symbol('shapeMode');
  const rejection = Symbol.for('nodejs.rejection');
  const monitor = Symbol('events.errorMonitor');
  let defaultMax = 10;
  const checkMax = (value, name) => {
    if (typeof value !== 'number') throw argumentType(name, 'number', value);
    if (value < 0 || Number.isNaN(value)) throw range(name, '>= 0', value);
  };

  function EventEmitter(options) { EventEmitter.init.call(this, options); }
  const prototype = EventEmitter.prototype;
  Object.assign(prototype, { _events: undefined, _eventsCount: 0, _maxListeners: undefined });
  EventEmitter.init = function (options) {
    if (this._events === undefined || this._events === Object.getPrototypeOf(this)._events) {
      this._events = { __proto__: null };
      this._eventsCount = 0;
      this[kShapeMode] = false;
    } else {
      this[kShapeMode] = true;
    }
    this._maxListeners = this._maxListeners || undefined;
    if (options?.captureRejections) {
      checks.boolean(options.captureRejections, 'options.captureRejections');
      this[kCapture] = true;
    } else {
      this[kCapture] = prototype[kCapture];
    }
  };
  Object.defineProperty(prototype, kCapture, { value: false, writable: true, enumerable: false });

  const limitOf = (emitter) => emitter._maxListeners ?? defaultMax;
  const listOf = (emitter, type) => {
    const now = emitter._events?.[type];
    return now === undefined ? [] : typeof now === 'function' ? [now] : now;
  };
  const define = (name, value) => Object.defineProperty(prototype, name, { value, writable: true, configurable: true, enumerable: true });
  const methods = {
    setMaxListeners(n) { checkMax(n, 'setMaxListeners'); this._maxListeners = n; return this; },
    getMaxListeners() { return limitOf(this); },
    emit(type, ...args) {
      const events = this._events;
      if (type === 'error') {
        if (events?.[monitor] !== undefined) this.emit(monitor, ...args);
        if (events?.error === undefined) {
          const [thrown] = args;
          if (thrown instanceof Error) throw thrown;
          const shown = native.inspect(thrown, 2);
          const unhandled = error('ERR_UNHANDLED_ERROR', `Unhandled error. (${shown})`);
          unhandled.context = thrown;
          throw unhandled;
        }
      }
      const handler = events?.[type];
      if (handler === undefined) return false;
      const list = typeof handler === 'function' ? [handler] : handler.slice();
      for (const listener of list) {
        const result = Reflect.apply(listener, this, args);
        if (this[kCapture] && result !== undefined && result !== null && typeof result.then === 'function') {
          result.then(undefined, (reason) => {
            captured.globals.process.nextTick(() => {
              if (typeof this[rejection] === 'function') this[rejection](reason, type, ...args);
              else this.emit('error', reason);
            });
          });
        }
      }
      return true;
    },
    addListener(type, listener) { return add(this, type, listener, false); },
    prependListener(type, listener) { return add(this, type, listener, true); },
    once(type, listener) {
      checks.function(listener, 'listener');
      return this.on(type, onceOf(this, type, listener));
    },
    prependOnceListener(type, listener) {
      checks.function(listener, 'listener');
      return this.prependListener(type, onceOf(this, type, listener));
    },
    removeListener(type, listener) {
      checks.function(listener, 'listener');
      const list = listOf(this, type);
      for (let i = list.length - 1; i >= 0; i--) {
        if (list[i] !== listener && list[i].listener !== listener) continue;
        const removed = list[i];
        const rest = list.slice(0, i).concat(list.slice(i + 1));
        if (rest.length === 0) {
          delete this._events[type];
          this._eventsCount--;
        } else {
          this._events[type] = rest.length === 1 ? rest[0] : rest;
        }
        if (this._events.removeListener !== undefined) this.emit('removeListener', type, removed.listener ?? removed);
        break;
      }
      return this;
    },
    removeAllListeners(type) {
      const events = this._events;
      if (events === undefined) return this;
      if (events.removeListener === undefined) {
        if (arguments.length === 0) {
          this._events = { __proto__: null };
          this._eventsCount = 0;
        } else if (events[type] !== undefined) {
          delete events[type];
          this._eventsCount--;
        }
        return this;
      }
      if (arguments.length === 0) {
        for (const key of Reflect.ownKeys(events)) if (key !== 'removeListener') this.removeAllListeners(key);
        this.removeAllListeners('removeListener');
        return this;
      }
      for (const listener of [...listOf(this, type)].reverse()) this.removeListener(type, listener);
      return this;
    },
    listeners(type) { return listOf(this, type).map((listener) => listener.listener ?? listener); },
    rawListeners(type) { return [...listOf(this, type)]; },
    listenerCount(type, listener) {
      const list = listOf(this, type);
      return listener === undefined ? list.length : list.filter((own) => own === listener || own.listener === listener).length;
    },
    eventNames() { return this._eventsCount > 0 ? Reflect.ownKeys(this._events) : []; },
  };
  const add = (emitter, type, listener, first) => {
    checks.function(listener, 'listener');
    if (emitter._events === undefined) {
      emitter._events = { __proto__: null };
      emitter._eventsCount = 0;
    } else if (emitter._events.newListener !== undefined) {
      emitter.emit('newListener', type, listener.listener ?? listener);
    }
    const now = emitter._events[type];
    if (now === undefined) {
      emitter._events[type] = listener;
      emitter._eventsCount++;
      return emitter;
    }
    let list = now;
    if (typeof now === 'function') list = emitter._events[type] = first ? [listener, now] : [now, listener];
    else if (first) now.unshift(listener);
    else now.push(listener);
    const most = limitOf(emitter);
    if (most > 0 && list.length > most && !list.warned) {
      list.warned = true;
      captured.globals.process.emitWarning?.(`Possible EventEmitter memory leak detected. ${list.length} ${String(type)} listeners added to ` +
        `${native.inspect(emitter, -1)}. MaxListeners is ${most}. Use emitter.setMaxListeners() to increase limit`, 'MaxListenersExceededWarning');
    }
    return emitter;
  };
  const onceOf = (emitter, type, listener) => {
    let fired = false;
    const wrapped = (...args) => {
      if (fired) return undefined;
      emitter.removeListener(type, wrapped);
      fired = true;
      return Reflect.apply(listener, emitter, args);
    };
    wrapped.listener = listener;
    return wrapped;
  };
  for (const name of Object.keys(methods)) define(name, methods[name]);
  define('on', methods.addListener);
  define('off', methods.removeListener);

  const isTarget = (emitter) => typeof emitter?.addEventListener === 'function';
  const listen = (emitter, name, listener, flags) => {
    if (typeof emitter.on === 'function') {
      if (flags?.once) emitter.once(name, listener);
      else emitter.on(name, listener);
    } else if (isTarget(emitter)) {
      emitter.addEventListener(name, listener, flags);
    } else {
      throw argumentType('emitter', 'EventEmitter', emitter);
    }
  };
  const unlisten = (emitter, name, listener) => {
    if (typeof emitter.removeListener === 'function') emitter.removeListener(name, listener);
    else emitter.removeEventListener(name, listener);
  };
  const once = async (emitter, name, options = {}) => {
    const { signal } = options;
    if (signal?.aborted) throw abort(signal);
    return new Promise((resolve, reject) => {
      const done = () => {
        unlisten(emitter, name, onEvent);
        if (!isTarget(emitter)) unlisten(emitter, 'error', onError);
        signal?.removeEventListener('abort', onAbort);
      };
      const onEvent = (...args) => { done(); resolve(args); };
      const onError = (reason) => { done(); reject(reason); };
      const onAbort = () => { done(); reject(abort(signal)); };
      listen(emitter, name, onEvent, { once: true });
      if (name !== 'error' && typeof emitter.once === 'function') emitter.once('error', onError);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  };
  const on = (emitter, name, options = {}) => {
    const { signal } = options;
    if (signal?.aborted) throw abort(signal);
    const values = [];
    const waiting = [];
    let failed;
    let finished = false;
    const finish = () => {
      if (finished) return;
      finished = true;
      unlisten(emitter, name, onEvent);
      if (typeof emitter.on === 'function') unlisten(emitter, 'error', onError);
      for (const end of options.close ?? []) unlisten(emitter, end, finish);
      signal?.removeEventListener('abort', onAbort);
      for (const { resolve } of waiting.splice(0)) resolve({ value: undefined, done: true });
    };
    const onEvent = (...args) => {
      if (waiting.length > 0) waiting.shift().resolve({ value: args, done: false });
      else values.push(args);
    };
    const onError = (reason) => {
      if (waiting.length > 0) waiting.shift().reject(reason);
      else failed = { reason };
      finish();
    };
    const onAbort = () => onError(abort(signal));
    listen(emitter, name, onEvent);
    if (name !== 'error' && typeof emitter.on === 'function') emitter.on('error', onError);
    for (const end of options.close ?? []) listen(emitter, end, finish);
    signal?.addEventListener('abort', onAbort, { once: true });
    return {
      next() {
        if (values.length > 0) return Promise.resolve({ value: values.shift(), done: false });
        if (failed !== undefined) {
          const { reason } = failed;
          failed = undefined;
          return Promise.reject(reason);
        }
        if (finished) return Promise.resolve({ value: undefined, done: true });
        return new Promise((resolve, reject) => { waiting.push({ resolve, reject }); });
      },
      return() { finish(); return Promise.resolve({ value: undefined, done: true }); },
      throw(reason) { onError(reason); return Promise.resolve({ value: undefined, done: true }); },
      [Symbol.asyncIterator]() { return this; },
    };
  };
  Object.assign(EventEmitter, {
    once, on, EventEmitter, usingDomains: false, captureRejectionSymbol: rejection, errorMonitor: monitor,
    listenerCount: (emitter, type) => (typeof emitter.listenerCount === 'function' ? emitter.listenerCount(type) : listOf(emitter, type).length),
    getEventListeners: (emitter, type) => (typeof emitter.listeners === 'function' ? emitter.listeners(type) : []),
    getMaxListeners: (emitter) => (typeof emitter.getMaxListeners === 'function' ? emitter.getMaxListeners() : defaultMax),
    setMaxListeners: (n = defaultMax, ...emitters) => {
      checkMax(n, 'setMaxListeners');
      if (emitters.length === 0) defaultMax = n;
      for (const emitter of emitters) emitter.setMaxListeners?.(n);
    },
    addAbortListener: (signal, listener) => {
      checks.function(listener, 'listener');
      if (signal.aborted) captured.globals.queueMicrotask(() => listener());
      else signal.addEventListener('abort', listener, { once: true });
      return { [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() { signal.removeEventListener('abort', listener); } };
    },
  });
  Object.defineProperty(EventEmitter, 'defaultMaxListeners', {
    enumerable: true,
    get() { return defaultMax; },
    set(n) { checkMax(n, 'defaultMaxListeners'); defaultMax = n; },
  });
  Object.defineProperty(EventEmitter, 'captureRejections', {
    enumerable: true,
    get() { return prototype[kCapture]; },
    set(value) { checks.boolean(value, 'EventEmitter.captureRejections'); prototype[kCapture] = value; },
  });
  class EventEmitterAsyncResource extends EventEmitter {}
  EventEmitter.EventEmitterAsyncResource = EventEmitterAsyncResource;
  return { events: EventEmitter };
}
