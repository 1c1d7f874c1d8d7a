// Small modules: `node:string_decoder`, `os`, `timers`, `timers/promises`, `constants`, `diagnostics_channel`, `perf_hooks`, `tty`, `console`.
0,function (_own, native, captured) {
  'use strict';
  const { Map, Object, Promise, Symbol, TypeError } = captured.globals;
  const { coded } = captured;
  const { argumentType, checks, error, abort } = captured.part('node_errors');

  // The bytes that begin a character which later bytes complete.
  const open = (bytes, encoding) => {
    if (encoding === 'utf16le') {
      let rest = bytes.length % 2;
      const high = bytes[bytes.length - rest - 1];
      if (bytes.length - rest >= 2 && high >= 0xD8 && high <= 0xDB) rest += 2;
      return rest;
    }
    if (encoding === 'base64' || encoding === 'base64url') return bytes.length % 3;
    if (encoding !== 'utf8') return 0;
    for (let back = 1; back <= 3 && back <= bytes.length; back++) {
      const byte = bytes[bytes.length - back];
      if (byte >= 0xC2 && byte <= 0xF4) {
        const needed = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
        const second = bytes[bytes.length - back + 1];
        const valid = second === undefined || !((byte === 0xE0 && second < 0xA0) || (byte === 0xED && second > 0x9F) ||
          (byte === 0xF0 && second < 0x90) || (byte === 0xF4 && second > 0x8F));
        return needed > back && valid ? back : 0;
      }
      if (byte < 0x80 || byte > 0xBF) return 0;
    }
    return 0;
  };
  const encodings = {
    utf8: 'utf8', 'utf-8': 'utf8', ucs2: 'utf16le', 'ucs-2': 'utf16le', utf16le: 'utf16le', 'utf-16le': 'utf16le', latin1: 'latin1',
    binary: 'latin1', base64: 'base64', base64url: 'base64url', ascii: 'ascii', hex: 'hex',
  };
  class StringDecoder {
    #rest = new captured.globals.Uint8Array(0);
    constructor(encoding = 'utf8') {
      this.encoding = encodings[`${encoding ?? 'utf8'}`.toLowerCase()];
      if (this.encoding === undefined) throw coded(new TypeError(`Unknown encoding: ${encoding}`), 'ERR_UNKNOWN_ENCODING');
    }
    write(chunk) {
      if (typeof chunk === 'string') return chunk;
      if (!captured.globals.ArrayBuffer.isView(chunk)) throw argumentType('buf', ['Buffer', 'TypedArray', 'DataView'], chunk);
      const added = new captured.globals.Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      let bytes = added;
      if (this.#rest.length > 0) {
        bytes = new captured.globals.Uint8Array(this.#rest.length + added.length);
        bytes.set(this.#rest);
        bytes.set(added, this.#rest.length);
      }
      const kept = open(bytes, this.encoding);
      this.#rest = bytes.slice(bytes.length - kept);
      return native.decode(bytes.subarray(0, bytes.length - kept), this.encoding, false);
    }
    end(chunk) {
      let text = chunk === undefined ? '' : this.write(chunk);
      if (this.#rest.length > 0) {
        const whole = this.encoding === 'utf16le' ? this.#rest.subarray(0, this.#rest.length & ~1) : this.#rest;
        text += this.encoding === 'utf8' ? '\ufffd' : native.decode(whole, this.encoding, false);
      }
      this.#rest = new captured.globals.Uint8Array(0);
      return text;
    }
    get lastNeed() { return this.#rest.length; }
  }

  // What a session may know of its machine: nothing.
  const { process } = captured.globals;
  const signals = Object.assign(Object.create(null), {
    SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGIOT: 6, SIGBUS: 7, SIGFPE: 8, SIGKILL: 9, SIGUSR1: 10,
    SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15, SIGCHLD: 17, SIGSTKFLT: 16, SIGCONT: 18, SIGSTOP: 19, SIGTSTP: 20,
    SIGTTIN: 21, SIGTTOU: 22, SIGURG: 23, SIGXCPU: 24, SIGXFSZ: 25, SIGVTALRM: 26, SIGPROF: 27, SIGWINCH: 28, SIGIO: 29, SIGPOLL: 29,
    SIGPWR: 30, SIGSYS: 31,
  });
  const errnos = captured.part('node_errno');
  const priority = { PRIORITY_LOW: 19, PRIORITY_BELOW_NORMAL: 10, PRIORITY_NORMAL: 0, PRIORITY_ABOVE_NORMAL: -7, PRIORITY_HIGH: -14, PRIORITY_HIGHEST: -20 };
  const os = {
    arch: () => process.arch, availableParallelism: () => 1,
    cpus: () => [{ model: 'unknown', speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }], endianness: () => 'LE',
    freemem: () => 1073741824, getPriority: () => 0, homedir: () => '/', hostname: () => 'localhost', loadavg: () => [0, 0, 0],
    networkInterfaces: () => ({}), platform: () => process.platform, release: () => '0.0.0', tmpdir: () => '/tmp', totalmem: () => 1073741824,
    type: () => 'Linux', userInfo: () => ({ uid: -1, gid: -1, username: 'user', homedir: '/', shell: null }),
    uptime: () => process.uptime(), version: () => '', machine: () => (process.arch === 'x64' ? 'x86_64' : process.arch),
    setPriority: () => { throw captured.part('node_errors').unavailable('os.setPriority', 'a session is one process with fixed limits'); },
    devNull: '/dev/null', EOL: '\n',
    constants: { UV_UDP_REUSEADDR: 4, dlopen: {}, errno: errnos.numbers, signals, priority },
  };

  const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate } = captured.globals;
  const kPromisify = Symbol.for('nodejs.util.promisify.custom');
  const waiting = (start, stop) => (value, options = {}) => new Promise((resolve, reject) => {
    const { signal } = options ?? {};
    if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
      reject(argumentType('options.signal', 'AbortSignal', signal));
      return;
    }
    if (signal?.aborted) { reject(abort(signal)); return; }
    const onAbort = () => { stop(timer); reject(abort(signal)); };
    const timer = start(() => { signal?.removeEventListener('abort', onAbort); resolve(value); });
    if (options?.ref === false) timer.unref?.();
    signal?.addEventListener('abort', onAbort, { once: true });
  });
  const after = (delay, value = undefined, options = {}) =>
    waiting((done) => setTimeout(done, delay), clearTimeout)(value, options);
  const soon = (value = undefined, options = {}) => waiting((done) => setImmediate(done), clearImmediate)(value, options);
  async function* every(delay, value = undefined, options = {}) {
    const { signal } = options ?? {};
    if (signal?.aborted) throw abort(signal);
    let passed = 0;
    let wake;
    const timer = setInterval(() => { passed++; wake?.(); }, delay);
    const onAbort = () => wake?.();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        if (passed === 0) await new Promise((resolve) => { wake = resolve; });
        if (signal?.aborted) throw abort(signal);
        for (; passed > 0; passed--) yield value;
      }
    } finally {
      clearInterval(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }
  for (const [timer, value] of [[setTimeout, after], [setImmediate, soon]]) {
    Object.defineProperty(timer, kPromisify, { value, configurable: true });
  }
  const timersPromises = {
    setTimeout: after, setImmediate: soon, setInterval: every,
    scheduler: { wait: (delay, options) => after(delay, undefined, options), yield: () => soon() },
  };
  const timers = {
    setTimeout, clearTimeout, setImmediate, clearImmediate, setInterval, clearInterval, promises: timersPromises,
    active: () => {}, unenroll: (timer) => clearTimeout(timer), enroll: () => {},
  };

  // Channels by name; one without subscribers may be collected by who holds it alone.
  class Channel {
    #subscribers = [];
    constructor(name) { this.name = name; }
    get hasSubscribers() { return this.#subscribers.length > 0; }
    subscribe(subscriber) { checks.function(subscriber, 'subscription'); this.#subscribers = [...this.#subscribers, subscriber]; }
    unsubscribe(subscriber) {
      const at = this.#subscribers.indexOf(subscriber);
      if (at === -1) return false;
      this.#subscribers = this.#subscribers.toSpliced(at, 1);
      return true;
    }
    publish(message) {
      for (const subscriber of this.#subscribers) {
        try {
          subscriber(message, this.name);
        } catch (thrown) {
          process.nextTick(() => { throw thrown; });
        }
      }
    }
    runStores(_context, fn, self = undefined, ...args) { return captured.apply(fn, self, args); }
  }
  const channels = new Map();
  const channel = (name) => {
    if (typeof name !== 'string' && typeof name !== 'symbol') throw argumentType('channel', ['string', 'symbol'], name);
    let known = channels.get(name);
    if (known === undefined) channels.set(name, known = new Channel(name));
    return known;
  };
  const tracingNames = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'];
  const tracingChannel = (name) => {
    const own = {};
    for (const event of tracingNames) own[event] = typeof name === 'string' ? channel(`tracing:${name}:${event}`) : name[event];
    return {
      ...own,
      get hasSubscribers() { return tracingNames.some((event) => own[event].hasSubscribers); },
      subscribe(handlers) { for (const event of tracingNames) if (handlers[event]) own[event].subscribe(handlers[event]); },
      unsubscribe(handlers) {
        let done = true;
        for (const event of tracingNames) if (handlers[event] && !own[event].unsubscribe(handlers[event])) done = false;
        return done;
      },
      traceSync(fn, context = {}, self = undefined, ...args) {
        own.start.publish(context);
        try {
          return context.result = captured.apply(fn, self, args);
        } catch (thrown) {
          context.error = thrown;
          own.error.publish(context);
          throw thrown;
        } finally {
          own.end.publish(context);
        }
      },
      tracePromise(fn, context = {}, self = undefined, ...args) {
        own.start.publish(context);
        const settle = (key, value) => {
          context[key] = value;
          if (key === 'error') own.error.publish(context);
          own.asyncStart.publish(context);
          own.asyncEnd.publish(context);
        };
        try {
          const promise = Promise.resolve(captured.apply(fn, self, args));
          return promise.then((value) => { settle('result', value); return value; }, (reason) => { settle('error', reason); throw reason; });
        } finally {
          own.end.publish(context);
        }
      },
    };
  };
  const diagnosticsChannel = {
    channel, Channel, tracingChannel, hasSubscribers: (name) => channels.get(name)?.hasSubscribers ?? false,
    subscribe: (name, subscriber) => channel(name).subscribe(subscriber),
    unsubscribe: (name, subscriber) => channel(name).unsubscribe(subscriber),
  };

  class PerformanceObserver {
    static supportedEntryTypes = ['function', 'mark', 'measure'];
    observe() { throw captured.part('node_errors').unavailable('PerformanceObserver', 'entries are read by performance.getEntries()'); }
    disconnect() {}
    takeRecords() { return []; }
  }
  const idle = { idle: 0, active: 0, utilization: 0 };
  const perfHooks = {
    get performance() { return captured.globals.performance; }, get PerformanceEntry() { return captured.globals.PerformanceEntry; },
    get PerformanceMark() { return captured.globals.PerformanceMark; }, get PerformanceMeasure() { return captured.globals.PerformanceMeasure; },
    PerformanceObserver,
    eventLoopUtilization: () => idle, monitorEventLoopDelay: () => { throw captured.part('node_errors').unavailable('monitorEventLoopDelay', 'it measures other processes'); },
    constants: {},
  };
  const tty = {
    isatty: () => false,
    ReadStream: function ReadStream() { throw error('ERR_INVALID_FD', '"fd" is no terminal: sessions have none'); },
    WriteStream: function WriteStream() { throw error('ERR_INVALID_FD', '"fd" is no terminal: sessions have none'); },
  };
  return {
    string_decoder: { StringDecoder }, os, timers, timersPromises, diagnosticsChannel, perfHooks, tty,
    get constants() { return { ...errnos.numbers, ...priority, ...signals, ...captured.hostConstants?.() }; },
  };
}
