// MessageChannel, MessagePort, MessageEvent and BroadcastChannel: all ports are in this session; a message is delivered in an iteration of the event loop.
0,function (_own, _native, captured) {
  'use strict';
  const { Array, DOMException, Event, EventTarget, Map, Object, Set, TypeError, setImmediate, structuredClone } = captured.globals;
  const { coded } = captured;
  const { enumerable, illegal, missing, tag } = captured.part('classes');
  let open = false;
  let pair;

  class MessageEvent extends Event {
    #data; #origin; #lastEventId; #source; #ports;
    constructor(type, options = undefined) {
      super(type, options);
      this.#data = options?.data ?? null;
      this.#origin = `${options?.origin ?? ''}`;
      this.#lastEventId = `${options?.lastEventId ?? ''}`;
      this.#source = options?.source ?? null;
      this.#ports = [...options?.ports ?? []];
    }
    get data() { return this.#data; }
    get origin() { return this.#origin; }
    get lastEventId() { return this.#lastEventId; }
    get source() { return this.#source; }
    get ports() { return this.#ports; }
  }
  enumerable(MessageEvent.prototype, ['data', 'origin', 'lastEventId', 'source', 'ports']);
  tag(MessageEvent.prototype, 'MessageEvent');

  class MessagePort extends EventTarget {
    #other; #queue = []; #started = false; #scheduled = false; #closed = false; #handlers = new Map(); #wrapped = new Map();
    constructor() {
      if (!open) throw illegal();
      super();
    }
    static {
      pair = (one, two) => { one.#other = two; two.#other = one; };
      captured.neverClones((object) => #other in object);
    }
    #deliver() {
      if (!this.#started || this.#scheduled || this.#queue.length === 0) return;
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        if (this.#closed) return;
        const next = this.#queue.shift();
        this.#deliver();
        if (next !== undefined) this.dispatchEvent(new MessageEvent('message', next));
      });
    }
    #close() {
      if (this.#closed) return;
      this.#closed = true;
      this.#queue = [];
      setImmediate(() => this.dispatchEvent(new Event('close')));
    }
    postMessage(message, options = undefined) {
      if (arguments.length === 0) throw missing('message');
      const transfer = Array.isArray(options) ? options : options?.transfer ?? [];
      if (transfer.some((item) => item instanceof MessagePort)) throw coded(new TypeError('Ports cannot be transferred in sessions'), 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM');
      const data = structuredClone(message, { transfer });
      if (this.#closed || this.#other.#closed) return;
      this.#other.#queue.push({ data });
      this.#other.#deliver();
    }
    start() {
      this.#started = true;
      this.#deliver();
    }
    close() {
      this.#close();
      this.#other.#close();
    }
    ref() { return this; }
    unref() { return this; }
    // The methods of Node's emitters: a listener gets the data of a message.
    on(name, listener) {
      const wrapped = (event) => listener.call(this, name === 'message' ? event.data : event);
      this.#wrapped.set(listener, wrapped);
      this.addEventListener(name, wrapped);
      if (name === 'message') this.start();
      return this;
    }
    once(name, listener) {
      const once = (value) => { this.off(name, once); listener.call(this, value); };
      return this.on(name, once);
    }
    off(name, listener) {
      this.removeEventListener(name, this.#wrapped.get(listener) ?? listener);
      this.#wrapped.delete(listener);
      return this;
    }
    #handler(name, value) {
      const before = this.#handlers.get(name);
      if (before !== undefined) this.removeEventListener(name, before);
      this.#handlers.delete(name);
      if (typeof value !== 'function') return;
      this.#handlers.set(name, value);
      this.addEventListener(name, value);
      if (name === 'message') this.start();
    }
    get onmessage() { return this.#handlers.get('message') ?? null; }
    set onmessage(value) { this.#handler('message', value); }
    get onmessageerror() { return this.#handlers.get('messageerror') ?? null; }
    set onmessageerror(value) { this.#handler('messageerror', value); }
    get onclose() { return this.#handlers.get('close') ?? null; }
    set onclose(value) { this.#handler('close', value); }
  }
  for (const [name, other] of [['addListener', 'on'], ['removeListener', 'off']]) {
    Object.defineProperty(MessagePort.prototype, name, { value: MessagePort.prototype[other], writable: true, configurable: true });
  }
  enumerable(MessagePort.prototype, ['postMessage', 'start', 'close', 'ref', 'unref', 'onmessage', 'onmessageerror', 'onclose']);

  class MessageChannel {
    constructor() {
      open = true;
      try {
        this.port1 = new MessagePort();
        this.port2 = new MessagePort();
      } finally {
        open = false;
      }
      pair(this.port1, this.port2);
    }
  }
  // Channels by name, of this session.
  const named = new Map();
  class BroadcastChannel extends EventTarget {
    #name; #open = true; #handler = null;
    static { captured.neverClones((object) => #open in object); }
    constructor(name) {
      if (arguments.length === 0) throw missing('name');
      super();
      this.#name = `${name}`;
      if (!named.has(this.#name)) named.set(this.#name, new Set());
      named.get(this.#name).add(this);
    }
    get name() { return this.#name; }
    postMessage(message) {
      if (arguments.length === 0) throw missing('message');
      if (!this.#open) throw new DOMException('BroadcastChannel is closed.', 'InvalidStateError');
      for (const other of named.get(this.#name)) {
        if (other === this) continue;
        const data = structuredClone(message);
        setImmediate(() => { if (other.#open) other.dispatchEvent(new MessageEvent('message', { data })); });
      }
    }
    close() {
      if (!this.#open) return;
      this.#open = false;
      const others = named.get(this.#name);
      others.delete(this);
      if (others.size === 0) named.delete(this.#name);
    }
    ref() { return this; }
    unref() { return this; }
    get onmessage() { return this.#handler; }
    set onmessage(value) {
      if (this.#handler !== null) this.removeEventListener('message', this.#handler);
      this.#handler = typeof value === 'function' ? value : null;
      if (this.#handler !== null) this.addEventListener('message', this.#handler);
    }
  }
  enumerable(BroadcastChannel.prototype, ['name', 'postMessage', 'close', 'onmessage']);
  tag(BroadcastChannel.prototype, 'BroadcastChannel');
  return { BroadcastChannel, MessageChannel, MessagePort, MessageEvent };
}
