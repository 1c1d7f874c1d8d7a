// WritableStream and TransformStream, and the transform streams for text and compression.
0,function (own, native, captured) {
  'use strict';
  const { TypeError, Object, Promise, Uint8Array, ArrayBuffer, TextDecoder } = captured.globals;
  const { apply, coded, invalidType, invalidValue } = captured;
  const { ReadableStream, Queue, after, attempt, callable, deferred, invalidState, quiet, strategyOf } = captured.part('readable');
  const { makeSignal, abortSignal } = captured.part('event');
  const { enumerable, illegal, invalidThis, tag } = captured.part('classes');
  const secret = {};

  let stateOf;
  class WritableStream {
    #state = { state: 'writable', error: undefined, writer: undefined, queue: new Queue(), started: false, inFlight: undefined,
      closeRequest: undefined, closing: false, pendingAbort: undefined, backpressure: false, mark: 1, size: undefined,
      signal: undefined, write: undefined, close: undefined, abort: undefined };
    constructor(sink = undefined, strategy = undefined) {
      const start = callable(sink, 'start');
      const write = callable(sink, 'write');
      const close = callable(sink, 'close');
      const abort = callable(sink, 'abort');
      if (sink?.type !== undefined) throw invalidValue(`The argument 'sink.type' is invalid. Received '${sink.type}'`);
      const state = this.#state;
      const { mark, size } = strategyOf(strategy, 1);
      state.mark = mark;
      state.size = size;
      const controller = new WritableStreamDefaultController(secret, state);
      state.write = write === undefined ? () => undefined : (chunk) => apply(write, sink, [chunk, controller]);
      state.close = close === undefined ? () => undefined : () => apply(close, sink, []);
      state.abort = abort === undefined ? () => undefined : (reason) => apply(abort, sink, [reason]);
      state.backpressure = desired(state) <= 0;
      const started = start === undefined ? undefined : apply(start, sink, [controller]);
      after(attempt(() => started), () => { state.started = true; advance(state); },
        (error) => { state.started = true; startErroring(state, error); });
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#state in value)) throw invalidThis('WritableStream');
      return value.#state;
    }
    get locked() { return WritableStream.#of(this).writer !== undefined; }
    abort(reason = undefined) {
      return attempt(() => {
        const state = WritableStream.#of(this);
        if (state.writer !== undefined) throw invalidState('WritableStream is locked');
        return abortStream(state, reason);
      });
    }
    close() {
      return attempt(() => {
        const state = WritableStream.#of(this);
        if (state.writer !== undefined) throw invalidState('WritableStream is locked');
        return closeStream(state);
      });
    }
    getWriter() { WritableStream.#of(this); return new WritableStreamDefaultWriter(this); }
    static {
      stateOf = (value) => (typeof value === 'object' && value !== null && #state in value ? value.#state : undefined);
      captured.showAs((object) => (#state in object
        ? { locked: object.#state.writer !== undefined, state: object.#state.state } : undefined));
    }
  }
  enumerable(WritableStream.prototype, ['locked', 'abort', 'close', 'getWriter']);
  tag(WritableStream.prototype, 'WritableStream');

  const desired = (state) => {
    if (state.state === 'errored' || state.state === 'erroring') return null;
    return state.state === 'closed' ? 0 : state.mark - state.queue.total;
  };
  const setBackpressure = (state) => {
    const now = state.state === 'writable' && state.closeRequest === undefined && !state.closing && desired(state) <= 0;
    if (now === state.backpressure) return;
    state.backpressure = now;
    const { writer } = state;
    if (writer === undefined) return;
    if (now) writer.ready = deferred(); else writer.ready.resolve(undefined);
    quiet(writer.ready.promise);
  };
  const startErroring = (state, error) => {
    if (state.state !== 'writable') return;
    state.state = 'erroring';
    state.error = error;
    const { writer } = state;
    if (writer !== undefined) {
      if (!state.backpressure) { writer.ready = deferred(); quiet(writer.ready.promise); }
      writer.ready.reject(error);
    }
    if (state.inFlight === undefined && state.started) finishErroring(state);
  };
  const finishErroring = (state) => {
    state.state = 'errored';
    const { queue } = state;
    while (!queue.isEmpty) queue.take().done.reject(state.error);
    const settle = () => {
      if (state.closeRequest !== undefined) { state.closeRequest.reject(state.error); state.closeRequest = undefined; }
      if (state.writer !== undefined) state.writer.closed.reject(state.error);
    };
    const pending = state.pendingAbort;
    state.pendingAbort = undefined;
    if (pending === undefined) { settle(); return; }
    if (pending.wasErroring) { pending.done.reject(state.error); settle(); return; }
    after(attempt(() => state.abort(pending.reason)), () => { pending.done.resolve(undefined); settle(); },
      (error) => { pending.done.reject(error); settle(); });
  };
  const advance = (state) => {
    if (!state.started || state.inFlight !== undefined) return;
    if (state.state === 'erroring') { finishErroring(state); return; }
    if (state.state !== 'writable') return;
    if (state.queue.isEmpty) {
      if (state.closeRequest === undefined || state.closing) return;
      state.closing = true;
      state.inFlight = state.closeRequest;
      after(attempt(state.close), () => {
        const request = state.closeRequest;
        state.inFlight = state.closeRequest = undefined;
        state.state = 'closed';
        request.resolve(undefined);
        if (state.pendingAbort !== undefined) { state.pendingAbort.done.resolve(undefined); state.pendingAbort = undefined; }
        state.writer?.closed.resolve(undefined);
      }, (error) => {
        const request = state.closeRequest;
        state.inFlight = state.closeRequest = undefined;
        request.reject(error);
        if (state.pendingAbort !== undefined) { state.pendingAbort.done.reject(error); state.pendingAbort = undefined; }
        if (state.state === 'writable') startErroring(state, error); else finishErroring(state);
      });
      return;
    }
    const { chunk, done } = state.queue.peek();
    state.inFlight = done;
    after(attempt(() => state.write(chunk)), () => {
      state.inFlight = undefined;
      state.queue.take();
      done.resolve(undefined);
      setBackpressure(state);
      advance(state);
    }, (error) => {
      state.inFlight = undefined;
      state.queue.take();
      done.reject(error);
      if (state.state === 'writable') startErroring(state, error); else finishErroring(state);
    });
  };
  const abortStream = (state, reason) => {
    if (state.state === 'closed' || state.state === 'errored') return Promise.resolve(undefined);
    abortSignal((state.signal ??= makeSignal()), reason);
    if (state.pendingAbort !== undefined) return state.pendingAbort.done.promise;
    if (state.state === 'closed' || state.state === 'errored') return Promise.resolve(undefined);
    const wasErroring = state.state === 'erroring';
    const pending = { reason: wasErroring ? undefined : reason, done: deferred(), wasErroring };
    state.pendingAbort = pending;
    if (!wasErroring) startErroring(state, reason);
    return pending.done.promise;
  };
  const closeStream = (state) => {
    if (state.state === 'closed' || state.state === 'errored') {
      return Promise.reject(state.state === 'errored' ? state.error : invalidState('WritableStream is closed'));
    }
    if (state.closeRequest !== undefined) return Promise.reject(invalidState('Failure closing WritableStream'));
    state.closeRequest = deferred();
    const { promise } = state.closeRequest;
    if (state.writer !== undefined && state.backpressure && state.state === 'writable') state.writer.ready.resolve(undefined);
    advance(state);
    return promise;
  };
  const writeChunk = (state, chunk) => {
    let size;
    try { size = state.size(chunk); } catch (error) { startErroring(state, error); return Promise.reject(error); }
    if (state.state === 'errored' || state.state === 'erroring') return Promise.reject(state.error);
    if (state.closeRequest !== undefined || state.state === 'closed') return Promise.reject(invalidState('WritableStream is closed'));
    const done = deferred();
    try { state.queue.put({ chunk, done }, size); } catch (error) { startErroring(state, error); return Promise.reject(error); }
    setBackpressure(state);
    advance(state);
    return done.promise;
  };

  class WritableStreamDefaultController {
    #state;
    constructor(key = undefined, state = undefined) {
      if (key !== secret) throw illegal();
      this.#state = state;
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#state in value)) throw invalidThis('WritableStreamDefaultController');
      return value.#state;
    }
    get signal() { return (WritableStreamDefaultController.#of(this).signal ??= makeSignal()); }
    error(error = undefined) { startErroring(WritableStreamDefaultController.#of(this), error); }
  }
  enumerable(WritableStreamDefaultController.prototype, ['signal', 'error']);
  tag(WritableStreamDefaultController.prototype, 'WritableStreamDefaultController');

  class WritableStreamDefaultWriter {
    #writer;
    constructor(stream) {
      const state = stateOf(stream);
      if (state === undefined) throw invalidType('The "stream" argument must be an instance of WritableStream.');
      if (state.writer !== undefined) throw invalidState('WritableStream is locked');
      const writer = { stream: state, ready: deferred(), closed: deferred() };
      state.writer = writer;
      quiet(writer.ready.promise);
      quiet(writer.closed.promise);
      if (state.state === 'errored') { writer.ready.reject(state.error); writer.closed.reject(state.error); }
      else if (state.state === 'erroring') writer.ready.reject(state.error);
      else if (state.state === 'closed') { writer.ready.resolve(undefined); writer.closed.resolve(undefined); }
      else if (!state.backpressure) writer.ready.resolve(undefined);
      this.#writer = writer;
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#writer in value)) throw invalidThis('WritableStreamDefaultWriter');
      return value.#writer;
    }
    static #stream(value) {
      const { stream } = WritableStreamDefaultWriter.#of(value);
      if (stream === undefined) throw invalidState('Writer is not bound to a WritableStream');
      return stream;
    }
    get closed() { return attempt(() => WritableStreamDefaultWriter.#of(this).closed.promise); }
    get ready() { return attempt(() => WritableStreamDefaultWriter.#of(this).ready.promise); }
    get desiredSize() { return desired(WritableStreamDefaultWriter.#stream(this)); }
    abort(reason = undefined) { return attempt(() => abortStream(WritableStreamDefaultWriter.#stream(this), reason)); }
    close() { return attempt(() => closeStream(WritableStreamDefaultWriter.#stream(this))); }
    write(chunk = undefined) { return attempt(() => writeChunk(WritableStreamDefaultWriter.#stream(this), chunk)); }
    releaseLock() {
      const writer = WritableStreamDefaultWriter.#of(this);
      if (writer.stream === undefined) return;
      const error = invalidState('Writer has been released');
      for (const name of ['ready', 'closed']) {
        const next = deferred();
        quiet(next.promise);
        writer[name].reject(error);
        next.reject(error);
        writer[name] = next;
      }
      writer.stream.writer = undefined;
      writer.stream = undefined;
    }
  }
  enumerable(WritableStreamDefaultWriter.prototype, ['closed', 'ready', 'desiredSize', 'abort', 'close', 'write', 'releaseLock']);
  tag(WritableStreamDefaultWriter.prototype, 'WritableStreamDefaultWriter');

  class TransformStream {
    #readable; #writable; #state;
    constructor(transformer = undefined, writableStrategy = undefined, readableStrategy = undefined) {
      const start = callable(transformer, 'start');
      const transform = callable(transformer, 'transform');
      const flush = callable(transformer, 'flush');
      const cancel = callable(transformer, 'cancel');
      const state = { readable: undefined, writing: undefined, backpressure: true, change: deferred(), failed: false,
        error: undefined, ended: false };
      this.#state = state;
      const started = deferred();
      // The writer waits while the readable side has as much as it wants.
      const setBackpressure = (backpressure) => {
        const { change } = state;
        state.change = deferred();
        state.backpressure = backpressure;
        change.resolve(undefined);
      };
      const fail = (error) => {
        if (state.failed) return;
        state.failed = true;
        state.error = error;
        state.readable.error(error);
        state.writing?.error(error);
        setBackpressure(false);
      };
      const controller = new TransformStreamDefaultController(secret, {
        desired: () => state.readable.desiredSize,
        enqueue(chunk) {
          try { state.readable.enqueue(chunk); } catch (error) { if (!state.ended) fail(error); throw error; }
          if (!state.backpressure && !(state.readable.desiredSize > 0)) setBackpressure(true);
        },
        error: fail,
        terminate() {
          if (!state.ended && !state.failed) state.readable.close();
          state.ended = true;
          state.writing?.error(invalidState('TransformStream terminated'));
          setBackpressure(false);
        },
      });
      const { mark, size } = strategyOf(readableStrategy, 0);
      this.#readable = new ReadableStream({
        start(readable) { state.readable = readable; return started.promise; },
        pull() { setBackpressure(false); return state.change.promise; },
        cancel(reason) {
          state.failed = true;
          state.error = reason;
          return after(attempt(() => (cancel === undefined ? undefined : apply(cancel, transformer, [reason]))), () => {
            state.writing.error(reason);
            setBackpressure(false);
          });
        },
      }, { highWaterMark: mark, size });
      this.#writable = new WritableStream({
        start(writing) { state.writing = writing; return started.promise; },
        async write(chunk) {
          if (state.backpressure) await state.change.promise;
          if (state.failed) throw state.error;
          try {
            if (transform === undefined) controller.enqueue(chunk);
            else await apply(transform, transformer, [chunk, controller]);
          } catch (error) {
            fail(error);
            throw error;
          }
        },
        async close() {
          try {
            if (flush !== undefined) await apply(flush, transformer, [controller]);
            if (state.failed) throw state.error;
            if (!state.ended) { state.ended = true; state.readable.close(); }
          } catch (error) {
            fail(error);
            throw error;
          }
        },
        async abort(reason) {
          state.failed = true;
          state.error = reason;
          try {
            if (cancel !== undefined) await apply(cancel, transformer, [reason]);
          } finally {
            state.readable.error(reason);
          }
        },
      }, writableStrategy);
      started.resolve(start === undefined ? undefined : apply(start, transformer, [controller]));
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#state in value)) throw invalidThis('TransformStream');
      return value;
    }
    get readable() { return TransformStream.#of(this).#readable; }
    get writable() { return TransformStream.#of(this).#writable; }
    static {
      captured.showAs((object) => (#state in object
        ? { readable: object.#readable, writable: object.#writable, backpressure: object.#state.backpressure } : undefined));
    }
  }
  enumerable(TransformStream.prototype, ['readable', 'writable']);
  tag(TransformStream.prototype, 'TransformStream');

  class TransformStreamDefaultController {
    #calls;
    constructor(key = undefined, calls = undefined) {
      if (key !== secret) throw illegal();
      this.#calls = calls;
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#calls in value)) throw invalidThis('TransformStreamDefaultController');
      return value.#calls;
    }
    get desiredSize() { return TransformStreamDefaultController.#of(this).desired(); }
    enqueue(chunk = undefined) { TransformStreamDefaultController.#of(this).enqueue(chunk); }
    error(reason = undefined) { TransformStreamDefaultController.#of(this).error(reason); }
    terminate() { TransformStreamDefaultController.#of(this).terminate(); }
  }
  enumerable(TransformStreamDefaultController.prototype, ['desiredSize', 'enqueue', 'error', 'terminate']);
  tag(TransformStreamDefaultController.prototype, 'TransformStreamDefaultController');

  const bytesOf = (chunk) => {
    if (chunk instanceof Uint8Array) return chunk;
    if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
    throw invalidType('The "chunk" argument must be an instance of ArrayBuffer, Buffer, TypedArray, or DataView.');
  };
  // A pair of streams around one transformer, which is all that the following classes are.
  class Pair {
    #stream;
    constructor(transformer) { this.#stream = new TransformStream(transformer); }
    get readable() { return this.#stream.readable; }
    get writable() { return this.#stream.writable; }
    static {
      captured.showAs((object) => (#stream in object
        ? { readable: object.#stream.readable, writable: object.#stream.writable } : undefined));
    }
  }
  enumerable(Pair.prototype, ['readable', 'writable']);
  class TextEncoderStream extends Pair {
    constructor() {
      // The first half of a surrogate pair whose second half is in the next chunk.
      let half = '';
      super({
        transform(chunk, controller) {
          let text = half + `${chunk}`;
          half = '';
          const last = text.charCodeAt(text.length - 1);
          if (last >= 0xd800 && last <= 0xdbff) { half = text[text.length - 1]; text = text.slice(0, -1); }
          if (text !== '') controller.enqueue(native.encode(text, 'utf8'));
        },
        flush(controller) { if (half !== '') controller.enqueue(native.encode(half, 'utf8')); },
      });
    }
    get encoding() { return 'utf-8'; }
  }
  class TextDecoderStream extends Pair {
    #decoder;
    constructor(label = 'utf-8', options = undefined) {
      const decoder = new TextDecoder(label, options);
      super({
        transform(chunk, controller) {
          const text = decoder.decode(bytesOf(chunk), { stream: true });
          if (text !== '') controller.enqueue(text);
        },
        flush(controller) {
          const text = decoder.decode();
          if (text !== '') controller.enqueue(text);
        },
      });
      this.#decoder = decoder;
    }
    get encoding() { return this.#decoder.encoding; }
    get fatal() { return this.#decoder.fatal; }
    get ignoreBOM() { return this.#decoder.ignoreBOM; }
  }
  const formatOf = (format) => {
    const name = `${format}`;
    if (name === 'gzip' || name === 'deflate' || name === 'deflate-raw') return name;
    throw invalidValue(`The argument 'format' must be one of: 'deflate', 'deflate-raw', 'gzip'. Received '${name}'`);
  };
  const coder = (Class, decompress, nameOf = formatOf) => class extends Pair {
    static { Object.defineProperty(this, 'name', { value: Class, configurable: true }); }
    constructor(format) {
      const name = nameOf(format);
      const code = own.coder(name, decompress);
      const run = (bytes, end, controller) => {
        let output;
        try { output = code(bytes, end); } catch (error) { throw coded(new TypeError(error.message), 'Z_DATA_ERROR'); }
        if (output.length > 0) controller.enqueue(output);
      };
      super({
        transform(chunk, controller) { run(bytesOf(chunk), false, controller); },
        flush(controller) { run(new Uint8Array(0), true, controller); },
      });
    }
  };
  const CompressionStream = coder('CompressionStream', false);
  const DecompressionStream = coder('DecompressionStream', true);
  // Brotli is a coding of `fetch`, and no format for scripts.
  const Decoder = coder('DecompressionStream', true, (format) => format);
  for (const [name, Class] of Object.entries({ TextEncoderStream, TextDecoderStream, CompressionStream, DecompressionStream })) {
    tag(Class.prototype, name);
  }

  return { WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController, TransformStream,
    TransformStreamDefaultController, TextEncoderStream, TextDecoderStream, CompressionStream, DecompressionStream, Decoder };
}
