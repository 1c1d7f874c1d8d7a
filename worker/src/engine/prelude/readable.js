// ReadableStream with its default reader and controller. A stream of type 'bytes' hands out Uint8Arrays; a BYOB reader is refused.
0,function (_own, native, captured) {
  'use strict';
  const { TypeError, RangeError, Symbol, Object, Promise, Uint8Array, ArrayBuffer, Number } = captured.globals;
  const { defineProperty, getPrototypeOf } = Object;
  const { apply, coded, invalidType, invalidValue } = captured;
  const { isSignal, onAbort } = captured.part('event');
  const { enumerable, illegal, invalidThis, tag } = captured.part('classes');
  const then = Promise.prototype.then;
  const deferred = () => {
    const result = {};
    result.promise = new Promise((resolve, reject) => { result.resolve = resolve; result.reject = reject; });
    return result;
  };
  const quiet = (promise) => { apply(then, promise, [undefined, () => {}]); return promise; };
  // `f` runs now; a value, a promise or an exception of it becomes a promise.
  const attempt = (f) => new Promise((resolve) => resolve(f()));
  const after = (promise, done, failed) => apply(then, promise, [done, failed]);
  const invalidState = (message) => coded(new TypeError(`Invalid state: ${message}`), 'ERR_INVALID_STATE');
  const secret = {};
  const callable = (object, name) => {
    const method = object?.[name];
    if (method === undefined || method === null) return undefined;
    if (typeof method !== 'function') throw invalidType(`The "${name}" property must be of type function.`);
    return method;
  };
  // The two members of a queuing strategy.
  const strategyOf = (strategy, usualMark) => {
    const size = callable(strategy, 'size');
    const given = strategy?.highWaterMark;
    const mark = given === undefined ? usualMark : Number(given);
    if (mark !== mark || mark < 0) {
      const error = new RangeError(`The property 'strategy.highWaterMark' is invalid. Received ${given}`);
      throw coded(error, 'ERR_INVALID_ARG_VALUE');
    }
    return { mark, size: size === undefined ? () => 1 : (chunk) => size(chunk) };
  };
  // Chunks with their sizes.
  class Queue {
    chunks = []; first = 0; total = 0;
    get isEmpty() { return this.first === this.chunks.length; }
    put(value, size) {
      const number = Number(size);
      if (!(number >= 0) || number === Infinity) throw coded(new RangeError('The chunk size is invalid.'), 'ERR_INVALID_ARG_VALUE');
      this.chunks.push({ value, size: number });
      this.total += number;
    }
    peek() { return this.chunks[this.first].value; }
    take() {
      const { value, size } = this.chunks[this.first];
      this.chunks[this.first] = undefined;
      this.first += 1;
      if (this.first > 64 && this.first * 2 > this.chunks.length) { this.chunks = this.chunks.slice(this.first); this.first = 0; }
      this.total = this.isEmpty ? 0 : this.total - size;
      return value;
    }
    clear() { this.chunks = []; this.first = 0; this.total = 0; }
  }

  let stateOf; // of a stream
  class ReadableStream {
    #state = { state: 'readable', error: undefined, reader: undefined, controller: undefined, disturbed: false, bytes: false };
    constructor(source = undefined, strategy = undefined) {
      const start = callable(source, 'start');
      const pull = callable(source, 'pull');
      const cancel = callable(source, 'cancel');
      const type = source?.type;
      if (type !== undefined && `${type}` !== 'bytes') throw invalidValue(`The argument 'source.type' is invalid. Received '${type}'`);
      const bytes = type !== undefined;
      if (bytes && strategy?.size !== undefined) throw coded(new RangeError('A byte stream has no size()'), 'ERR_INVALID_ARG_VALUE');
      const { mark, size } = strategyOf(strategy, bytes ? 0 : 1);
      const state = this.#state;
      state.bytes = bytes;
      const controller = { stream: state, queue: new Queue(), mark, size, pull: undefined, cancel: undefined, started: false,
        closing: false, pulling: false, again: false, facade: undefined };
      const Facade = bytes ? ReadableByteStreamController : ReadableStreamDefaultController;
      controller.facade = new Facade(secret, controller);
      controller.pull = pull === undefined ? undefined : () => apply(pull, source, [controller.facade]);
      controller.cancel = cancel === undefined ? undefined : (reason) => apply(cancel, source, [reason]);
      state.controller = controller;
      const started = start === undefined ? undefined : apply(start, source, [controller.facade]);
      after(attempt(() => started), () => { controller.started = true; pullIfNeeded(controller); },
        (error) => fail(state, error));
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#state in value)) throw invalidThis('ReadableStream');
      return value.#state;
    }
    static from(iterable) {
      const asyncIterate = iterable?.[Symbol.asyncIterator];
      const iterate = asyncIterate ?? iterable?.[Symbol.iterator];
      if (typeof iterate !== 'function') throw coded(new TypeError(`${String(iterable)} is not iterable`), 'ERR_ARG_NOT_ITERABLE');
      const iterator = apply(iterate, iterable, []);
      return new ReadableStream({
        async pull(controller) {
          const step = await iterator.next();
          if (step.done) controller.close();
          else controller.enqueue(await step.value);
        },
        async cancel(reason) { if (typeof iterator.return === 'function') await iterator.return(reason); },
      }, { highWaterMark: 0 });
    }
    get locked() { return ReadableStream.#of(this).reader !== undefined; }
    cancel(reason = undefined) {
      return attempt(() => {
        const state = ReadableStream.#of(this);
        if (state.reader !== undefined) throw invalidState('ReadableStream is locked');
        return cancelStream(state, reason);
      });
    }
    getReader(options = undefined) {
      ReadableStream.#of(this);
      const mode = options?.mode;
      if (mode !== undefined) {
        if (`${mode}` !== 'byob') throw invalidValue(`The argument 'options.mode' is invalid. Received '${mode}'`);
        throw coded(new TypeError('BYOB readers are not available: read the stream with getReader().'), 'ERR_FEATURE_UNAVAILABLE');
      }
      return new ReadableStreamDefaultReader(this);
    }
    tee() { return teeOf(ReadableStream.#of(this), this); }
    pipeThrough(transform, options = undefined) {
      ReadableStream.#of(this);
      const { readable, writable } = transform;
      if (stateOf(readable) === undefined) throw invalidType('The "transform.readable" property must be an instance of ReadableStream.');
      if (this.locked) throw invalidState('The ReadableStream is locked');
      if (writable.locked) throw invalidState('The WritableStream is locked');
      quiet(this.pipeTo(writable, options));
      return readable;
    }
    pipeTo(destination, options = undefined) {
      return attempt(() => {
        ReadableStream.#of(this);
        const signal = options?.signal;
        if (signal !== undefined && !isSignal(signal)) throw invalidType('The "options.signal" property must be an AbortSignal.');
        if (this.locked) throw invalidState('The ReadableStream is locked');
        if (destination.locked) throw invalidState('The WritableStream is locked');
        return pipe(this, destination, { preventClose: !!options?.preventClose, preventAbort: !!options?.preventAbort,
          preventCancel: !!options?.preventCancel, signal });
      });
    }
    values(options = undefined) {
      ReadableStream.#of(this);
      return new ReadableStreamAsyncIterator(this.getReader(), !!options?.preventCancel);
    }
    static {
      stateOf = (value) => (typeof value === 'object' && value !== null && #state in value ? value.#state : undefined);
      captured.showAs((object) => (#state in object
        ? { locked: object.#state.reader !== undefined, state: object.#state.state, supportsBYOB: false } : undefined));
    }
  }
  defineProperty(ReadableStream.prototype, Symbol.asyncIterator,
    { value: ReadableStream.prototype.values, writable: true, configurable: true });
  enumerable(ReadableStream.prototype, ['locked', 'cancel', 'getReader', 'tee', 'pipeThrough', 'pipeTo', 'values']);
  enumerable(ReadableStream, ['from']);
  tag(ReadableStream.prototype, 'ReadableStream');

  const close = (state) => {
    if (state.state !== 'readable') return;
    state.state = 'closed';
    const { reader } = state;
    if (reader === undefined) return;
    const { requests } = reader;
    reader.requests = [];
    for (const request of requests) request.resolve({ value: undefined, done: true });
    reader.closed.resolve(undefined);
  };
  const fail = (state, error) => {
    if (state.state !== 'readable') return;
    state.state = 'errored';
    state.error = error;
    state.controller.queue.clear();
    release(state.controller);
    const { reader } = state;
    if (reader === undefined) return;
    const { requests } = reader;
    reader.requests = [];
    for (const request of requests) request.reject(error);
    reader.closed.reject(error);
  };
  const release = (controller) => { controller.pull = controller.cancel = undefined; controller.size = () => 1; };
  const desired = (controller) => {
    if (controller.stream.state === 'errored') return null;
    return controller.stream.state === 'closed' ? 0 : controller.mark - controller.queue.total;
  };
  const pullIfNeeded = (controller) => {
    const { stream } = controller;
    if (!controller.started || controller.closing || stream.state !== 'readable' || controller.pull === undefined) return;
    if (!(stream.reader !== undefined && stream.reader.requests.length > 0) && !(desired(controller) > 0)) return;
    if (controller.pulling) { controller.again = true; return; }
    controller.pulling = true;
    after(attempt(controller.pull), () => {
      controller.pulling = false;
      if (controller.again) { controller.again = false; pullIfNeeded(controller); }
    }, (error) => fail(stream, error));
  };
  const enqueue = (controller, chunk) => {
    const { stream } = controller;
    if (controller.closing || stream.state !== 'readable') throw invalidState('Controller is already closed');
    if (stream.reader !== undefined && stream.reader.requests.length > 0) {
      stream.reader.requests.shift().resolve({ value: chunk, done: false });
    } else {
      try {
        controller.queue.put(chunk, stream.bytes ? chunk.byteLength : controller.size(chunk));
      } catch (error) {
        fail(stream, error);
        throw error;
      }
    }
    pullIfNeeded(controller);
  };
  const closeController = (controller) => {
    if (controller.closing || controller.stream.state !== 'readable') throw invalidState('Controller is already closed');
    controller.closing = true;
    if (controller.queue.isEmpty) { release(controller); close(controller.stream); }
  };
  const cancelStream = (state, reason) => {
    state.disturbed = true;
    if (state.state === 'closed') return Promise.resolve(undefined);
    if (state.state === 'errored') return Promise.reject(state.error);
    close(state);
    const { controller } = state;
    controller.queue.clear();
    const { cancel } = controller;
    release(controller);
    return after(attempt(() => cancel?.(reason)), () => undefined);
  };
  // What a reader gets next.
  const read = (state) => {
    state.disturbed = true;
    if (state.state === 'closed') return Promise.resolve({ value: undefined, done: true });
    if (state.state === 'errored') return Promise.reject(state.error);
    const { controller } = state;
    if (!controller.queue.isEmpty) {
      const value = controller.queue.take();
      if (controller.closing && controller.queue.isEmpty) { release(controller); close(state); } else pullIfNeeded(controller);
      return Promise.resolve({ value, done: false });
    }
    const request = deferred();
    state.reader.requests.push(request);
    pullIfNeeded(controller);
    return request.promise;
  };

  const controllerClass = (Class, of) => {
    enumerable(Class.prototype, ['desiredSize', 'close', 'enqueue', 'error']);
    tag(Class.prototype, of);
  };
  class ReadableStreamDefaultController {
    #controller;
    constructor(key = undefined, controller = undefined) {
      if (key !== secret) throw illegal();
      this.#controller = controller;
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#controller in value)) throw invalidThis('ReadableStreamDefaultController');
      return value.#controller;
    }
    get desiredSize() { return desired(ReadableStreamDefaultController.#of(this)); }
    close() { closeController(ReadableStreamDefaultController.#of(this)); }
    enqueue(chunk = undefined) { enqueue(ReadableStreamDefaultController.#of(this), chunk); }
    error(error = undefined) { fail(ReadableStreamDefaultController.#of(this).stream, error); }
  }
  controllerClass(ReadableStreamDefaultController, 'ReadableStreamDefaultController');
  class ReadableByteStreamController {
    #controller;
    constructor(key = undefined, controller = undefined) {
      if (key !== secret) throw illegal();
      this.#controller = controller;
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#controller in value)) throw invalidThis('ReadableByteStreamController');
      return value.#controller;
    }
    get byobRequest() { ReadableByteStreamController.#of(this); return null; }
    get desiredSize() { return desired(ReadableByteStreamController.#of(this)); }
    close() { closeController(ReadableByteStreamController.#of(this)); }
    enqueue(chunk) {
      const controller = ReadableByteStreamController.#of(this);
      if (!ArrayBuffer.isView(chunk)) throw invalidType('The "chunk" argument must be an instance of Buffer, TypedArray, or DataView.');
      if (chunk.byteLength === 0) throw invalidState('chunk ArrayBuffer is zero-length or detached');
      const { byteOffset, byteLength } = chunk;
      enqueue(controller, new Uint8Array(chunk.buffer.transfer(), byteOffset, byteLength));
    }
    error(error = undefined) { fail(ReadableByteStreamController.#of(this).stream, error); }
  }
  controllerClass(ReadableByteStreamController, 'ReadableByteStreamController');

  class ReadableStreamDefaultReader {
    #reader;
    constructor(stream) {
      const state = stateOf(stream);
      if (state === undefined) throw invalidType('The "stream" argument must be an instance of ReadableStream.');
      if (state.reader !== undefined) throw invalidState('ReadableStream is locked');
      const reader = { stream: state, requests: [], closed: deferred() };
      quiet(reader.closed.promise);
      state.reader = reader;
      this.#reader = reader;
      if (state.state === 'closed') reader.closed.resolve(undefined);
      if (state.state === 'errored') reader.closed.reject(state.error);
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#reader in value)) throw invalidThis('ReadableStreamDefaultReader');
      return value.#reader;
    }
    get closed() { return attempt(() => ReadableStreamDefaultReader.#of(this).closed.promise); }
    read() {
      return attempt(() => {
        const { stream } = ReadableStreamDefaultReader.#of(this);
        if (stream === undefined) throw invalidState('The reader is not attached to a stream');
        return read(stream);
      });
    }
    cancel(reason = undefined) {
      return attempt(() => {
        const { stream } = ReadableStreamDefaultReader.#of(this);
        if (stream === undefined) throw invalidState('The reader is not attached to a stream');
        return cancelStream(stream, reason);
      });
    }
    releaseLock() {
      const reader = ReadableStreamDefaultReader.#of(this);
      if (reader.stream === undefined) return;
      const error = coded(new TypeError('Invalid state: Reader released'), 'ERR_INVALID_STATE');
      if (reader.stream.state === 'readable') reader.closed.reject(error);
      else { reader.closed = deferred(); quiet(reader.closed.promise); reader.closed.reject(error); }
      const { requests } = reader;
      reader.requests = [];
      reader.stream.reader = undefined;
      reader.stream = undefined;
      for (const request of requests) request.reject(error);
    }
  }
  enumerable(ReadableStreamDefaultReader.prototype, ['closed', 'read', 'cancel', 'releaseLock']);
  tag(ReadableStreamDefaultReader.prototype, 'ReadableStreamDefaultReader');

  class ReadableStreamAsyncIterator {
    #reader; #preventCancel; #last; #done = false;
    constructor(reader, preventCancel) { this.#reader = reader; this.#preventCancel = preventCancel; }
    // Calls are carried out one after the other.
    #queue(run) {
      const next = this.#last === undefined ? attempt(run) : after(this.#last, run, run);
      this.#last = quiet(next);
      return next;
    }
    next() {
      return this.#queue(async () => {
        if (this.#done) return { value: undefined, done: true };
        try {
          const step = await this.#reader.read();
          if (step.done) { this.#done = true; this.#reader.releaseLock(); }
          return step;
        } catch (error) {
          this.#done = true;
          this.#reader.releaseLock();
          throw error;
        }
      });
    }
    return(value = undefined) {
      return this.#queue(async () => {
        if (this.#done) return { value, done: true };
        this.#done = true;
        const cancelled = this.#preventCancel ? undefined : this.#reader.cancel(value);
        this.#reader.releaseLock();
        await cancelled;
        return { value, done: true };
      });
    }
  }
  const asyncIterator = getPrototypeOf(getPrototypeOf(getPrototypeOf(async function* () {}.prototype)));
  Object.setPrototypeOf(ReadableStreamAsyncIterator.prototype, asyncIterator);
  delete ReadableStreamAsyncIterator.prototype.constructor;
  enumerable(ReadableStreamAsyncIterator.prototype, ['next', 'return']);

  // Two streams with the chunks of one.
  const teeOf = (state, stream) => {
    const reader = stream.getReader();
    const cancelled = [undefined, undefined];
    const bothCancelled = deferred();
    const controllers = [];
    const branches = [];
    let reading = false;
    let again = false;
    const pull = () => {
      if (reading) { again = true; return undefined; }
      reading = true;
      return after(reader.read(), (step) => {
        reading = false;
        // Each branch may change its bytes, and takes them over.
        const chunks = [step.value, state.bytes && !step.done ? step.value.slice() : step.value];
        for (let i = 0; i < 2; i++) {
          if (cancelled[i] !== undefined) continue;
          if (step.done) controllers[i].close();
          else controllers[i].enqueue(chunks[i]);
        }
        if (step.done && (cancelled[0] === undefined || cancelled[1] === undefined)) bothCancelled.resolve(undefined);
        if (again && !step.done) { again = false; return pull(); }
        return undefined;
      }, () => {});
    };
    for (let i = 0; i < 2; i++) {
      branches.push(new ReadableStream({
        type: state.bytes ? 'bytes' : undefined,
        start(controller) { controllers.push(controller); },
        pull,
        cancel(reason) {
          cancelled[i] = { reason };
          if (cancelled[1 - i] !== undefined) {
            bothCancelled.resolve(reader.cancel([cancelled[0].reason, cancelled[1].reason]));
          }
          return bothCancelled.promise;
        },
      }));
    }
    apply(then, reader.closed, [undefined, (error) => {
      for (const controller of controllers) controller.error(error);
      bothCancelled.resolve(undefined);
    }]);
    return branches;
  };

  const pipe = (source, destination, options) => {
    const reader = source.getReader();
    const writer = destination.getWriter();
    const result = deferred();
    let ending = false;
    let written = Promise.resolve(undefined);
    const end = (action, failed, error) => {
      if (ending) return;
      ending = true;
      // What was written is finished first.
      const acted = after(after(written, () => {}, () => {}), () => action?.());
      const finish = (hasError, value) => {
        forget?.();
        writer.releaseLock();
        reader.releaseLock();
        if (hasError) result.reject(value); else result.resolve(undefined);
      };
      after(acted, () => finish(failed, error), (other) => finish(true, other));
    };
    let forget;
    if (options.signal !== undefined) {
      const { signal } = options;
      const abort = () => {
        const { reason } = signal;
        end(() => Promise.all([
          options.preventAbort ? undefined : destination.locked && writer.abort(reason),
          options.preventCancel ? undefined : reader.cancel(reason),
        ]), true, reason);
      };
      if (signal.aborted) { abort(); return result.promise; }
      forget = onAbort(signal, abort);
    }
    after(writer.closed, () => {
      if (ending) return;
      const error = invalidState('The destination stream is closed');
      end(options.preventCancel ? undefined : () => reader.cancel(error), true, error);
    }, (error) => end(options.preventCancel ? undefined : () => reader.cancel(error), true, error));
    const step = () => {
      if (ending) return;
      after(writer.ready, () => {
        if (ending) return;
        after(reader.read(), (chunk) => {
          if (ending) return;
          if (chunk.done) {
            end(options.preventClose ? undefined : () => writer.close(), false);
            return;
          }
          written = quiet(writer.write(chunk.value));
          step();
        }, (error) => end(options.preventAbort ? undefined : () => writer.abort(error), true, error));
      }, () => {});
    };
    step();
    return result.promise;
  };

  class Strategy {
    #mark;
    constructor(init) {
      if (init === undefined || init === null || init.highWaterMark === undefined) {
        throw coded(new TypeError('The "options.highWaterMark" property must be specified'), 'ERR_MISSING_OPTION');
      }
      this.#mark = +init.highWaterMark;
    }
    get highWaterMark() { return this.#mark; }
  }
  const byteSize = { size(chunk) { return chunk.byteLength; } }.size;
  const countSize = { size() { return 1; } }.size;
  class ByteLengthQueuingStrategy extends Strategy { get size() { return byteSize; } }
  class CountQueuingStrategy extends Strategy { get size() { return countSize; } }
  tag(ByteLengthQueuingStrategy.prototype, 'ByteLengthQueuingStrategy');
  tag(CountQueuingStrategy.prototype, 'CountQueuingStrategy');

  return { ReadableStream, ReadableStreamDefaultReader, ReadableStreamDefaultController, ReadableByteStreamController,
    ByteLengthQueuingStrategy, CountQueuingStrategy,
    isReadable: (value) => stateOf(value) !== undefined, isDisturbed: (value) => stateOf(value).disturbed,
    Queue, after, attempt, callable, deferred, invalidState, quiet, strategyOf };
}
