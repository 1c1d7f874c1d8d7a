// Event, CustomEvent, EventTarget, AbortController and AbortSignal, as Node has them: without a tree of targets.
0,function (_own, native, captured) {
  'use strict';
  const { TypeError, Object, Map, Set, Error, DOMException } = captured.globals;
  const { defineProperty } = Object;
  const { apply, coded, invalidType } = captured;
  const { enumerable, invalidThis, missing, tag } = captured.part('classes');

  // What the two classes know of an event's dispatch.
  let begin;
  let finish;
  let stoppedNow;
  let setPassive;
  let isEvent;
  let dispatching;

  class Event {
    #type; #bubbles; #cancelable; #composed; #timeStamp; #target = null; #current = null; #phase = 0;
    #canceled = false; #stop = false; #stopNow = false; #passive = false; #dispatching = false;
    constructor(type, options = undefined) {
      if (arguments.length === 0) throw missing('type');
      if (options !== undefined && options !== null && typeof options !== 'object' && typeof options !== 'function') {
        throw invalidType('The "options" argument must be of type object.');
      }
      this.#type = `${type}`;
      this.#bubbles = !!options?.bubbles;
      this.#cancelable = !!options?.cancelable;
      this.#composed = !!options?.composed;
      this.#timeStamp = native.nanoseconds() / 1e6;
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#type in value)) throw invalidThis('Event');
      return value;
    }
    get type() { return Event.#of(this).#type; }
    get target() { return Event.#of(this).#target; }
    get srcElement() { return Event.#of(this).#target; }
    get currentTarget() { return Event.#of(this).#current; }
    get bubbles() { return Event.#of(this).#bubbles; }
    get cancelable() { return Event.#of(this).#cancelable; }
    get composed() { return Event.#of(this).#composed; }
    get defaultPrevented() { return Event.#of(this).#canceled; }
    get returnValue() { return !Event.#of(this).#canceled; }
    get timeStamp() { return Event.#of(this).#timeStamp; }
    get eventPhase() { return Event.#of(this).#phase; }
    get isTrusted() { return false; }
    get cancelBubble() { return Event.#of(this).#stop; }
    set cancelBubble(value) { if (value) Event.#of(this).#stop = true; }
    composedPath() { return Event.#of(this).#dispatching ? [this.#current] : []; }
    preventDefault() {
      const self = Event.#of(this);
      if (self.#cancelable && !self.#passive) self.#canceled = true;
    }
    stopPropagation() { Event.#of(this).#stop = true; }
    stopImmediatePropagation() { Event.#of(this).#stop = true; this.#stopNow = true; }
    initEvent(type, bubbles = false, cancelable = false) {
      const self = Event.#of(this);
      if (self.#dispatching) return;
      self.#type = `${type}`;
      self.#bubbles = !!bubbles;
      self.#cancelable = !!cancelable;
      self.#canceled = self.#stop = self.#stopNow = false;
    }
    static {
      isEvent = (value) => typeof value === 'object' && value !== null && #type in value;
      dispatching = (event) => event.#dispatching;
      begin = (event, target) => { event.#target = event.#current = target; event.#phase = 2; event.#dispatching = true; };
      finish = (event) => {
        event.#current = null;
        event.#phase = 0;
        event.#dispatching = event.#stop = event.#stopNow = event.#passive = false;
        return !event.#canceled;
      };
      stoppedNow = (event) => event.#stopNow;
      setPassive = (event, passive) => { event.#passive = passive; };
      captured.showAs((object) => (#type in object ? {
        type: object.#type, defaultPrevented: object.#canceled, cancelable: object.#cancelable, timeStamp: object.#timeStamp,
      } : undefined));
    }
  }
  for (const [name, value] of [['NONE', 0], ['CAPTURING_PHASE', 1], ['AT_TARGET', 2], ['BUBBLING_PHASE', 3]]) {
    for (const owner of [Event, Event.prototype]) defineProperty(owner, name, { value, enumerable: true });
  }
  enumerable(Event.prototype, ['type', 'target', 'srcElement', 'currentTarget', 'bubbles', 'cancelable', 'composed',
    'defaultPrevented', 'returnValue', 'timeStamp', 'eventPhase', 'cancelBubble', 'composedPath', 'preventDefault',
    'stopPropagation', 'stopImmediatePropagation', 'initEvent']);
  tag(Event.prototype, 'Event');

  class CustomEvent extends Event {
    #detail;
    constructor(type, options = undefined) {
      super(...arguments);
      this.#detail = options?.detail ?? null;
    }
    get detail() {
      if (typeof this !== 'object' || this === null || !(#detail in this)) throw invalidThis('CustomEvent');
      return this.#detail;
    }
  }
  enumerable(CustomEvent.prototype, ['detail']);
  tag(CustomEvent.prototype, 'CustomEvent');

  // An exception in a listener does not reach who dispatches the event: it ends the execution, as one of a timer's callback does.
  const report = (error) => native.tickAdd(() => { throw error; }, []);

  let attributeOf;
  class EventTarget {
    #listeners = new Map();
    #attributes;
    static #of(value) {
      if (value === undefined || value === null || !(#listeners in value)) throw invalidThis('EventTarget');
      return value;
    }
    addEventListener(type, listener, options = undefined) {
      const self = EventTarget.#of(this);
      if (arguments.length < 2) throw missing(arguments.length === 0 ? 'type' : 'listener');
      const capture = typeof options === 'boolean' ? options : !!options?.capture;
      const once = !!options?.once;
      const passive = !!options?.passive;
      const signal = options?.signal;
      if (signal !== undefined && !isSignal(signal)) {
        throw invalidType('The "options.signal" property must be an instance of AbortSignal.');
      }
      if (listener === null || listener === undefined) return;
      if (typeof listener !== 'function' && typeof listener !== 'object') {
        throw invalidType('The "listener" argument must be an instance of EventListener.');
      }
      if (signal?.aborted) return;
      const name = `${type}`;
      let list = self.#listeners.get(name);
      if (list === undefined) self.#listeners.set(name, (list = []));
      for (const known of list) if (known.listener === listener && known.capture === capture) return;
      const entry = { listener, capture, once, passive, removed: false };
      list.push(entry);
      if (signal !== undefined) onAbort(signal, () => self.#remove(name, entry));
    }
    removeEventListener(type, listener, options = undefined) {
      const self = EventTarget.#of(this);
      if (arguments.length < 2) throw missing(arguments.length === 0 ? 'type' : 'listener');
      const capture = typeof options === 'boolean' ? options : !!options?.capture;
      const name = `${type}`;
      for (const known of self.#listeners.get(name) ?? []) {
        if (known.listener === listener && known.capture === capture) self.#remove(name, known);
      }
    }
    #remove(name, entry) {
      entry.removed = true;
      const list = this.#listeners.get(name);
      if (list === undefined) return;
      const rest = [];
      for (const known of list) if (known !== entry) rest.push(known);
      this.#listeners.set(name, rest);
    }
    dispatchEvent(event) {
      const self = EventTarget.#of(this);
      if (arguments.length < 1) throw missing('event');
      if (!isEvent(event)) throw invalidType('The "event" argument must be an instance of Event.');
      if (dispatching(event)) {
        throw coded(new Error('The event is already being dispatched'), 'ERR_EVENT_RECURSION');
      }
      return self.#dispatch(event);
    }
    #dispatch(event) {
      begin(event, this);
      const { type } = event;
      for (const entry of [...this.#listeners.get(type) ?? []]) {
        if (entry.removed) continue;
        if (entry.once) this.#remove(type, entry);
        setPassive(event, entry.passive);
        try {
          const { listener } = entry;
          const result = typeof listener === 'function' ? apply(listener, this, [event]) : listener.handleEvent(event);
          // As in Node, the rejection of an async listener is not lost.
          if (result !== undefined && result !== null && typeof result.then === 'function') {
            apply(result.then, result, [undefined, report]);
          }
        } catch (error) {
          report(error);
        }
        setPassive(event, false);
        if (stoppedNow(event)) break;
      }
      return finish(event);
    }
    static {
      // `onabort` and the like: a listener that is replaced by the next one.
      attributeOf = {
        get(target, name) { return target.#attributes?.[name]?.callback ?? null; },
        set(target, name, callback) {
          target.#attributes ??= { __proto__: null };
          const known = target.#attributes[name];
          if (typeof callback !== 'function' && (typeof callback !== 'object' || callback === null)) {
            if (known !== undefined) { target.#remove(name, known.entry); delete target.#attributes[name]; }
            return;
          }
          if (known !== undefined) { known.callback = callback; return; }
          const attribute = { callback, entry: undefined };
          attribute.entry = {
            listener(event) { if (typeof attribute.callback === 'function') apply(attribute.callback, this, [event]); },
            capture: false, once: false, passive: false, removed: false,
          };
          target.#attributes[name] = attribute;
          const list = target.#listeners.get(name);
          if (list === undefined) target.#listeners.set(name, [attribute.entry]);
          else list.push(attribute.entry);
        },
      };
    }
  }
  enumerable(EventTarget.prototype, ['addEventListener', 'removeEventListener', 'dispatchEvent']);
  tag(EventTarget.prototype, 'EventTarget');

  const { dispatchEvent } = EventTarget.prototype;
  const secret = {};
  let isSignal;
  let onAbort;
  let makeSignal;
  let abortSignal;
  class AbortSignal extends EventTarget {
    #aborted = false; #reason; #algorithms = []; #sources = []; #dependents = []; #composite = false;
    constructor(key = undefined) {
      if (key !== secret) throw coded(new TypeError('Illegal constructor'), 'ERR_ILLEGAL_CONSTRUCTOR');
      super();
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#aborted in value)) throw invalidThis('AbortSignal');
      return value;
    }
    static abort(reason = new DOMException('This operation was aborted', 'AbortError')) {
      const signal = new AbortSignal(secret);
      signal.#aborted = true;
      signal.#reason = reason;
      return signal;
    }
    static timeout(delay) {
      if (arguments.length === 0 || typeof delay !== 'number') throw invalidType('The "delay" argument must be of type number.');
      if (!(delay >= 0 && delay <= 4_294_967_295 && delay % 1 === 0)) {
        throw coded(new captured.globals.RangeError('The value of "delay" is out of range. It must be an integer >= 0 && ' +
          `<= 4294967295. Received ${delay}`), 'ERR_OUT_OF_RANGE');
      }
      const signal = new AbortSignal(secret);
      const id = native.timerAdd(
        () => signal.#abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), delay, false, []);
      // It does not keep an execution running.
      native.timerRef(id, false);
      return signal;
    }
    static any(signals) {
      const list = [...signals];
      const signal = new AbortSignal(secret);
      signal.#composite = true;
      for (const source of list) {
        if (!isSignal(source)) throw invalidType('The "signals" argument must be a list of AbortSignal instances.');
      }
      for (const source of list) {
        if (source.#aborted) {
          signal.#aborted = true;
          signal.#reason = source.#reason;
          return signal;
        }
      }
      const sources = new Set();
      for (const source of list) {
        for (const origin of source.#composite ? source.#sources : [source]) sources.add(origin);
      }
      for (const source of sources) {
        signal.#sources.push(source);
        source.#dependents.push(signal);
      }
      return signal;
    }
    get aborted() { return AbortSignal.#of(this).#aborted; }
    get reason() { return AbortSignal.#of(this).#reason; }
    throwIfAborted() { if (AbortSignal.#of(this).#aborted) throw this.#reason; }
    get onabort() { return attributeOf.get(AbortSignal.#of(this), 'abort'); }
    set onabort(callback) { attributeOf.set(AbortSignal.#of(this), 'abort', callback); }
    #abort(reason) {
      if (this.#aborted) return;
      const all = [];
      for (const signal of [this, ...this.#dependents]) {
        if (signal.#aborted) continue;
        signal.#aborted = true;
        signal.#reason = reason;
        all.push(signal);
      }
      this.#dependents = [];
      for (const signal of all) {
        const algorithms = signal.#algorithms;
        signal.#algorithms = [];
        for (const algorithm of algorithms) algorithm(reason);
        apply(dispatchEvent, signal, [new Event('abort')]);
      }
    }
    static {
      isSignal = (value) => typeof value === 'object' && value !== null && #aborted in value;
      onAbort = (signal, algorithm) => {
        signal.#algorithms.push(algorithm);
        return () => {
          const rest = [];
          for (const other of signal.#algorithms) if (other !== algorithm) rest.push(other);
          signal.#algorithms = rest;
        };
      };
      makeSignal = () => new AbortSignal(secret);
      abortSignal = (signal, reason) => signal.#abort(reason);
      captured.showAs((object) => (#aborted in object ? { aborted: object.#aborted } : undefined));
    }
  }
  enumerable(AbortSignal.prototype, ['aborted', 'reason', 'throwIfAborted', 'onabort']);
  tag(AbortSignal.prototype, 'AbortSignal');

  class AbortController {
    #signal = makeSignal();
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#signal in value)) throw invalidThis('AbortController');
      return value;
    }
    get signal() { return AbortController.#of(this).#signal; }
    abort(reason = new DOMException('This operation was aborted', 'AbortError')) {
      abortSignal(AbortController.#of(this).#signal, reason);
    }
    static {
      captured.showAs((object) => (#signal in object ? { signal: object.#signal } : undefined));
    }
  }
  enumerable(AbortController.prototype, ['signal', 'abort']);
  tag(AbortController.prototype, 'AbortController');

  // The other parts use them without reading properties that a script may replace.
  return { Event, CustomEvent, EventTarget, AbortSignal, AbortController, isSignal, onAbort, makeSignal, abortSignal };
}
