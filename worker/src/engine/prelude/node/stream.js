// `node:stream`: writable streams, and those that are both.
0,function (_own, _native, captured) {
  'use strict';
  const { Buffer, Object, Promise, Symbol, TypeError, Uint8Array } = captured.globals;
  const { coded } = captured;
  const { argumentType, error, checks } = captured.part('node_errors');
  const { finished, pipeline, addAbortSignal, install } = captured.part('node_stream_tools');
  const {
    Stream, Readable, markOf, begin, lifeMethods, lifeAccessors, accessors, fail, done, later, startReadable, marks, setMark,
  } = captured.part('node_readable');

  // Writable.
  function Writable(options) {
    if (!(this instanceof Writable) && !(this instanceof Duplex)) return new Writable(options);
    startWritable(this, options);
    Stream.call(this, options);
    begin(this, options);
  }
  const startWritable = (stream, options, duplex = false) => {
    const objectMode = Boolean(options?.objectMode || (duplex && options?.writableObjectMode));
    stream._writableState = {
      __proto__: null, objectMode, highWaterMark: markOf(options, duplex ? 'writableHighWaterMark' : '', objectMode, 'highWaterMark'),
      decodeStrings: options?.decodeStrings !== false, encoding: options?.defaultEncoding ?? 'utf8', queue: [], length: 0, writing: false, corked: 0,
      ending: false, ended: false, finished: false, finalCalled: false, prefinished: false, needDrain: false, callbacks: [],
    };
    for (const name of ['write', 'writev', 'final']) if (typeof options?.[name] === 'function') stream[`_${name}`] = options[name];
  };
  Object.setPrototypeOf(Writable.prototype, Stream.prototype);
  Object.setPrototypeOf(Writable, Stream);
  Object.defineProperty(Writable, Symbol.hasInstance, {
    value(object) {
      if (captured.apply(captured.functionHasInstance, this, [object])) return true;
      return this === Writable && typeof object === 'object' && object !== null && object._writableState !== undefined;
    },
  });
  const writeNow = (stream) => {
    const w = stream._writableState;
    if (!stream._life.constructed && !w.waits) { w.waits = true; stream._life.waiting.push(() => writeNow(stream)); }
    if (w.writing || w.corked > 0 || stream.destroyed || w.queue.length === 0 || !stream._life.constructed) { finish(stream); return; }
    let items;
    let sync = true;
    if (typeof stream._writev === 'function' && (w.queue.length > 1 || typeof stream._write !== 'function' || stream._write === Writable.prototype._write)) items = w.queue.splice(0);
    else items = [w.queue.shift()];
    w.writing = true;
    const written = (failed = undefined) => {
      if (!w.writing) { fail(stream, error('ERR_MULTIPLE_CALLBACK', 'Callback called multiple times')); return; }
      w.writing = false;
      for (const item of items) w.length -= item.size;
      const rest = () => {
        if (failed) {
          for (const item of items) item.callback(failed);
          for (const item of w.queue.splice(0)) { w.length -= item.size; item.callback(failed); }
          return;
        }
        if (w.needDrain && w.length === 0 && !stream.destroyed && !w.ending) { w.needDrain = false; stream.emit('drain'); }
        for (const item of items) item.callback(null);
        finish(stream);
      };
      if (failed) fail(stream, failed);
      else if (w.queue.length > 0 && !sync) writeNow(stream);
      if (sync) later(() => { rest(); if (!failed && w.queue.length > 0) writeNow(stream); });
      else rest();
    };
    try {
      if (items.length > 1 || (typeof stream._writev === 'function' && stream._write === Writable.prototype._write)) {
        stream._writev(items.map(({ chunk, encoding }) => ({ chunk, encoding })), written);
      } else {
        stream._write(items[0].chunk, items[0].encoding, written);
      }
    } catch (thrown) {
      w.writing = false;
      sync = false;
      fail(stream, thrown);
    }
    sync = false;
  };
  const finish = (stream) => {
    const w = stream._writableState;
    if (!w.ending || w.writing || w.queue.length > 0 || w.finished || w.finalCalled || stream.destroyed || stream.errored || !stream._life.constructed) return;
    w.finalCalled = true;
    const end = (failed = undefined) => {
      if (failed) {
        for (const callback of w.callbacks.splice(0)) callback(failed);
        fail(stream, failed);
        return;
      }
      if (!w.prefinished) { w.prefinished = true; stream.emit('prefinish'); }
      later(() => {
        if (w.finished || stream.errored) return;
        w.finished = true;
        for (const callback of w.callbacks.splice(0)) callback(null);
        stream.emit('finish');
        done(stream);
      });
    };
    if (typeof stream._final !== 'function') { end(); return; }
    later(() => {
      let called = false;
      const once = (failed) => {
        if (called) { fail(stream, failed ?? error('ERR_MULTIPLE_CALLBACK', 'Callback called multiple times')); return; }
        called = true;
        end(failed);
      };
      try { stream._final(once); } catch (thrown) { once(thrown); }
    });
  };
  const nothing = () => {};
  const writableMethods = {
    write(given, encodingOrCallback = undefined, last = undefined) {
      const w = this._writableState;
      const callback = typeof encodingOrCallback === 'function' ? encodingOrCallback : typeof last === 'function' ? last : nothing;
      let encoding = typeof encodingOrCallback === 'string' ? encodingOrCallback : w.encoding;
      let chunk = given;
      if (chunk === null) throw coded(new TypeError('May not write null values to stream'), 'ERR_STREAM_NULL_VALUES');
      if (!w.objectMode) {
        if (typeof chunk === 'string') {
          if (!Buffer.isEncoding(encoding)) throw coded(new TypeError(`Unknown encoding: ${encoding}`), 'ERR_UNKNOWN_ENCODING');
          if (w.decodeStrings) { chunk = Buffer.from(chunk, encoding); encoding = 'buffer'; }
        } else if (Buffer.isBuffer(chunk)) encoding = 'buffer';
        else if (chunk instanceof Uint8Array) { chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length); encoding = 'buffer'; } else throw argumentType('chunk', ['string', 'Buffer', 'TypedArray', 'DataView'], chunk);
      }
      let failed;
      if (w.ending) failed = error('ERR_STREAM_WRITE_AFTER_END', 'write after end');
      else if (this.destroyed) failed = error('ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed');
      if (failed) {
        later(callback, failed);
        fail(this, failed);
        return false;
      }
      const size = w.objectMode ? 1 : chunk.length;
      w.length += size;
      const room = w.length < w.highWaterMark;
      if (!room) w.needDrain = true;
      w.queue.push({ chunk, encoding, callback, size });
      if (!w.writing && w.queue.length === 1) writeNow(this);
      return room && !this.errored && !this.destroyed;
    },
    end(chunk = undefined, encoding = undefined, last = undefined) {
      const w = this._writableState;
      const callback = [chunk, encoding, last].find((value) => typeof value === 'function');
      if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') this.write(chunk, typeof encoding === 'string' ? encoding : undefined);
      if (w.corked > 0) { w.corked = 1; this.uncork(); }
      let failed;
      if (!this.errored && !w.ending) {
        w.ending = true;
        writeNow(this);
        w.ended = true;
      } else if (w.finished) failed = error('ERR_STREAM_ALREADY_FINISHED', 'Cannot call end after a stream was finished');
      else if (this.destroyed) failed = error('ERR_STREAM_DESTROYED', 'Cannot call end after a stream was destroyed');
      if (callback) {
        if (failed) later(callback, failed);
        else if (w.finished) later(callback);
        else w.callbacks.push(callback);
      }
      return this;
    },
    cork() { this._writableState.corked++; },
    uncork() {
      const w = this._writableState;
      if (w.corked > 0 && --w.corked === 0) writeNow(this);
    },
    setDefaultEncoding(encoding) { this._writableState.encoding = `${encoding}`.toLowerCase(); return this; },
    _write(chunk, encoding, callback) {
      if (typeof this._writev === 'function') this._writev([{ chunk, encoding }], callback);
      else throw error('ERR_METHOD_NOT_IMPLEMENTED', 'The _write() method is not implemented');
    },
    pipe() { fail(this, error('ERR_STREAM_CANNOT_PIPE', 'Cannot pipe, not readable')); },
  };
  Object.assign(Writable.prototype, writableMethods, lifeMethods);
  Writable.prototype.destroy = function (failed, callback) {
    const w = this._writableState;
    if (!this.destroyed && (w.queue.length > 0 || w.callbacks.length > 0)) {
      later(() => {
        const reason = failed ?? error('ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed');
        for (const item of w.queue.splice(0)) item.callback(reason);
        for (const waiting of w.callbacks.splice(0)) waiting(reason);
      });
    }
    return captured.apply(lifeMethods.destroy, this, [failed, callback]);
  };
  accessors(Writable.prototype, lifeAccessors);
  const writableAccessors = {
    get writable() { const w = this._writableState; return Boolean(w) && w.writable !== false && !this.destroyed && !this.errored && !w.ending && !w.ended; },
    set writable(value) { if (this._writableState) this._writableState.writable = Boolean(value); },
    get writableFinished() { return this._writableState?.finished ?? false; },
    get writableEnded() { return this._writableState?.ending ?? false; },
    get writableLength() { return this._writableState?.length; },
    get writableHighWaterMark() { return this._writableState?.highWaterMark; },
    get writableObjectMode() { return this._writableState?.objectMode ?? false; },
    get writableCorked() { return this._writableState?.corked ?? 0; },
    get writableNeedDrain() { const w = this._writableState; return Boolean(w) && !this.destroyed && !w.ending && w.needDrain; },
    get writableAborted() { return (this.destroyed || Boolean(this.errored)) && !this._writableState.finished; },
    get writableBuffer() { return this._writableState?.queue; },
  };
  accessors(Writable.prototype, writableAccessors);

  // Both.
  function Duplex(options) {
    if (!(this instanceof Duplex)) return new Duplex(options);
    startReadable(this, options, true);
    startWritable(this, options, true);
    Stream.call(this, options);
    if (typeof options?.read === 'function') this._read = options.read;
    this.allowHalfOpen = options?.allowHalfOpen !== false;
    if (options?.readable === false) { Object.assign(this._readableState, { readable: false, ended: true, endEmitted: true }); }
    if (options?.writable === false) { Object.assign(this._writableState, { writable: false, ending: true, ended: true, finished: true }); }
    begin(this, options);
  }
  Object.setPrototypeOf(Duplex.prototype, Readable.prototype);
  Object.setPrototypeOf(Duplex, Readable);
  for (const name of Object.keys(writableMethods)) if (name !== 'pipe') Duplex.prototype[name] = Writable.prototype[name];
  Duplex.prototype.destroy = Writable.prototype.destroy;
  accessors(Duplex.prototype, writableAccessors);

  function Transform(options) {
    if (!(this instanceof Transform)) return new Transform(options);
    Duplex.call(this, options);
    this._readableState.sync = false;
    this._transformState = { callback: null };
    if (typeof options?.transform === 'function') this._transform = options.transform;
    if (typeof options?.flush === 'function') this._flush = options.flush;
  }
  Object.setPrototypeOf(Transform.prototype, Duplex.prototype);
  Object.setPrototypeOf(Transform, Duplex);
  Object.assign(Transform.prototype, {
    _transform() { throw error('ERR_METHOD_NOT_IMPLEMENTED', 'The _transform() method is not implemented'); },
    _write(chunk, encoding, callback) {
      const r = this._readableState;
      const before = r.length;
      this._transform(chunk, encoding, (failed, value) => {
        if (failed) { callback(failed); return; }
        if (value !== undefined && value !== null) this.push(value);
        if (r.ended || before === r.length || r.length < r.highWaterMark) callback();
        else this._transformState.callback = callback;
      });
    },
    _read() {
      const { callback } = this._transformState;
      if (callback === null) return;
      this._transformState.callback = null;
      callback();
    },
    _final(callback) {
      if (typeof this._flush !== 'function') { this.push(null); callback(); return; }
      this._flush((failed, value) => {
        if (failed) { callback(failed); return; }
        if (value !== undefined && value !== null) this.push(value);
        this.push(null);
        callback();
      });
    },
  });
  function PassThrough(options) {
    if (!(this instanceof PassThrough)) return new PassThrough(options);
    Transform.call(this, options);
  }
  Object.setPrototypeOf(PassThrough.prototype, Transform.prototype);
  Object.setPrototypeOf(PassThrough, Transform);
  PassThrough.prototype._transform = (chunk, _encoding, callback) => callback(null, chunk);
  for (const Class of [Stream, Readable, Writable, Duplex, Transform, PassThrough]) {
    Object.defineProperty(Class.prototype, 'constructor', { value: Class, writable: true, configurable: true, enumerable: false });
  }
  const promises = {
    finished: (stream, options) => new Promise((resolve, reject) => { finished(stream, options ?? {}, (failed) => (failed ? reject(failed) : resolve())); }),
    pipeline: (...streams) => new Promise((resolve, reject) => {
      const options = captured.globals.Object.getPrototypeOf(streams.at(-1) ?? null) === Object.prototype && typeof streams.at(-1).on !== 'function' &&
        typeof streams.at(-1)[Symbol.asyncIterator] !== 'function' ? streams.pop() : {};
      pipeline(...streams, (failed, value) => (failed ? reject(failed) : resolve(value)), options);
    }),
  };
  Object.assign(Stream, {
    Stream, Readable, Writable, Duplex, Transform, PassThrough, finished, pipeline, addAbortSignal, promises,
    getDefaultHighWaterMark: marks,
    setDefaultHighWaterMark: (objectMode, value) => { checks.integer(value, 'value', 0); setMark(objectMode, value); },
    isReadable: (stream) => stream?.readable ?? null, isWritable: (stream) => stream?.writable ?? null,
    isErrored: (stream) => Boolean(stream?.errored), isDisturbed: (stream) => Boolean(stream?.readableDidRead || stream?.readableAborted),
    _uint8ArrayToBuffer: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), _isUint8Array: (value) => value instanceof Uint8Array,
  });
  install({ Readable, Writable, Duplex });
  return { stream: Stream, promises };
}
