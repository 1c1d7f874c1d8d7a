// What streams have in common, and readable streams.
0,function (_own, native, captured) {
  'use strict';
  const { Buffer, Math, Object, Promise, Reflect, Symbol, TypeError, Uint8Array, process } = captured.globals;
  const { coded } = captured;
  const { argumentType, error } = captured.part('node_errors');
  const { events: EventEmitter } = captured.part('node_events');
  const { StringDecoder } = captured.part('node_small').string_decoder;
  const { finished, addAbortSignal } = captured.part('node_stream_tools');
  let bytesMark = 65536;
  let objectMark = 16;
  const later = (work, ...args) => process.nextTick(work, ...args);

  function Stream(options) { EventEmitter.call(this, options); }
  Object.setPrototypeOf(Stream.prototype, EventEmitter.prototype);
  Object.setPrototypeOf(Stream, EventEmitter);
  Stream.prototype.pipe = function (target, options) {
    const onData = (chunk) => { if (target.writable && target.write(chunk) === false) this.pause?.(); };
    this.on('data', onData);
    target.on('drain', () => this.resume?.());
    if (options?.end !== false) {
      this.on('end', () => target.end());
      this.on('close', () => target.destroy?.());
    }
    target.emit('pipe', this);
    return target;
  };

  const markOf = (options, own, objectMode, name) => {
    const mark = options?.highWaterMark ?? options?.[own];
    if (mark === undefined || mark === null) return objectMode ? objectMark : bytesMark;
    if (typeof mark !== 'number' || mark < 0 || mark % 1 !== 0) {
      throw coded(new TypeError(`The property 'options.${name}' is invalid. Received ${native.inspect(mark, 0)}`), 'ERR_INVALID_ARG_VALUE');
    }
    return mark;
  };
  // Both halves share what happens at the end.
  const shared = (stream, options) => {
    stream._life ??= { __proto__: null, destroyed: false, closed: false, closeEmitted: false, errored: null, errorEmitted: false, emitClose: options?.emitClose !== false,
      autoDestroy: options?.autoDestroy !== false, constructed: typeof stream._construct !== 'function', waiting: [] };
    return stream._life;
  };
  const begin = (stream, options) => {
    for (const name of ['destroy', 'construct']) if (typeof options?.[name] === 'function') stream[`_${name}`] = options[name];
    const life = shared(stream, options);
    life.constructed = typeof stream._construct !== 'function';
    if (options?.signal) addAbortSignal(options.signal, stream);
    if (life.constructed) return;
    later(() => {
      let called = false;
      const done = (failed) => {
        if (called) return;
        called = true;
        life.constructed = true;
        if (failed) stream.destroy(failed);
        for (const work of life.waiting.splice(0)) work();
      };
      try { stream._construct(done); } catch (thrown) { done(thrown); }
    });
  };
  const whenConstructed = (stream, work) => (stream._life.constructed ? work() : stream._life.waiting.push(work));
  const lifeMethods = {
    destroy(failed = undefined, callback = undefined) {
      const life = this._life;
      if (life.destroyed) { if (typeof callback === 'function') callback(); return this; }
      life.destroyed = true;
      if (failed) life.errored ??= failed;
      const run = () => {
        let called = false;
        const done = (problem) => {
          if (called) return;
          called = true;
          const shown = problem ?? null;
          if (shown) life.errored ??= shown;
          life.closed = true;
          if (typeof callback === 'function') callback(shown);
          later(() => {
            if (shown && !life.errorEmitted) { life.errorEmitted = true; this.emit('error', shown); }
            if (life.emitClose) { life.closeEmitted = true; this.emit('close'); }
          });
        };
        try { this._destroy(failed ?? null, done); } catch (thrown) { done(thrown); }
      };
      whenConstructed(this, run);
      return this;
    },
    _destroy(failed, callback) { callback(failed); },
    [EventEmitter.captureRejectionSymbol](failed) { this.destroy(failed); },
  };
  const accessors = (prototype, table) => {
    for (const name of Object.keys(table)) {
      Object.defineProperty(prototype, name, { configurable: true, enumerable: false, ...Object.getOwnPropertyDescriptor(table, name) });
    }
  };
  const lifeAccessors = {
    get destroyed() { return this._life?.destroyed ?? false; },
    set destroyed(value) { if (this._life) this._life.destroyed = value; },
    get closed() { return this._life?.closed ?? false; },
    get errored() { return this._life?.errored ?? null; },
  };
  const fail = (stream, failed) => {
    const life = stream._life;
    if (life.autoDestroy) { stream.destroy(failed); return; }
    life.errored ??= failed;
    later(() => { if (!life.errorEmitted) { life.errorEmitted = true; stream.emit('error', failed); } });
  };
  const done = (stream) => {
    const [r, w] = [stream._readableState, stream._writableState];
    if (stream._life.autoDestroy && (!r || r.endEmitted) && (!w || w.finished)) stream.destroy();
  };

  // Readable.
  function Readable(options) {
    if (!(this instanceof Readable)) return new Readable(options);
    startReadable(this, options);
    Stream.call(this, options);
    if (typeof options?.read === 'function') this._read = options.read;
    begin(this, options);
  }
  const startReadable = (stream, options, duplex = false) => {
    const objectMode = Boolean(options?.objectMode || (duplex && options?.readableObjectMode));
    stream._readableState = {
      __proto__: null, objectMode, highWaterMark: markOf(options, duplex ? 'readableHighWaterMark' : '', objectMode, options?.highWaterMark === undefined && duplex ? 'readableHighWaterMark' : 'highWaterMark'),
      buffer: [], length: 0, flowing: null, ended: false, endEmitted: false, reading: false, decoder: null, encoding: null, pipes: [],
      needReadable: false, scheduled: false, resumeScheduled: false, readableListening: false, awaitDrain: 0, dataEmitted: false, paused: false,
    };
    if (options?.encoding) setEncoding(stream, options.encoding);
  };
  const setEncoding = (stream, encoding) => {
    const r = stream._readableState;
    r.decoder = new StringDecoder(encoding);
    r.encoding = r.decoder.encoding;
    const text = r.buffer.map((chunk) => r.decoder.write(chunk)).join('');
    r.buffer = text === '' ? [] : [text];
    r.length = text.length;
  };
  Object.setPrototypeOf(Readable.prototype, Stream.prototype);
  Object.setPrototypeOf(Readable, Stream);
  const sizeOf = (r, chunk) => (r.objectMode ? 1 : chunk.length);
  const add = (stream, given, encoding, front) => {
    const r = stream._readableState;
    let chunk = given;
    if (!front) r.reading = false;
    if (chunk === null) {
      if (front || r.ended) return false;
      r.ended = true;
      const rest = r.decoder?.end();
      if (rest) { r.buffer.push(rest); r.length += sizeOf(r, rest); }
      emitReadable(stream);
      return false;
    }
    if (!r.objectMode) {
      if (typeof chunk === 'string') {
        if (r.encoding === null || front ? (encoding ?? 'utf8') !== r.encoding : true) chunk = Buffer.from(chunk, encoding ?? 'utf8');
      } else if (chunk instanceof Uint8Array) {
        if (!Buffer.isBuffer(chunk)) chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
      } else if (chunk !== undefined) {
        fail(stream, argumentType('chunk', ['string', 'Buffer', 'TypedArray', 'DataView'], chunk));
        return false;
      }
    }
    if (chunk === undefined || (!r.objectMode && chunk.length === 0)) { if (!front) more(stream); return wants(r); }
    if (front) {
      if (r.endEmitted) { fail(stream, error('ERR_STREAM_UNSHIFT_AFTER_END_EVENT', 'stream.unshift() after end event')); return false; }
      r.buffer.unshift(r.decoder && typeof chunk !== 'string' ? r.decoder.write(chunk) : chunk);
      r.length += sizeOf(r, r.buffer[0]);
      emitReadable(stream);
      return wants(r);
    }
    if (r.ended) { fail(stream, error('ERR_STREAM_PUSH_AFTER_EOF', 'stream.push() after EOF')); return false; }
    if (stream.destroyed || stream.errored) return false;
    if (r.decoder) {
      chunk = r.decoder.write(chunk);
      if (chunk.length === 0) { more(stream); return wants(r); }
    }
    if (r.flowing && r.length === 0 && !r.sync && stream.listenerCount('data') > 0) {
      r.dataEmitted = true;
      stream.emit('data', chunk);
    } else {
      r.buffer.push(chunk);
      r.length += sizeOf(r, chunk);
      if (r.needReadable || r.flowing) emitReadable(stream);
    }
    more(stream);
    return wants(r);
  };
  const wants = (r) => !r.ended && (r.length < r.highWaterMark || r.length === 0);
  const more = (stream) => {
    const r = stream._readableState;
    if (r.readingMore || !stream._life.constructed) return;
    r.readingMore = true;
    later(() => {
      while (!r.reading && !r.ended && (r.length < r.highWaterMark || (r.flowing && r.length === 0))) {
        const before = r.length;
        stream.read(0);
        if (before === r.length) break;
      }
      r.readingMore = false;
    });
  };
  const emitReadable = (stream) => {
    const r = stream._readableState;
    r.needReadable = false;
    if (r.scheduled) return;
    r.scheduled = true;
    later(() => {
      r.scheduled = false;
      if (!stream.destroyed && !stream.errored && (r.length > 0 || r.ended)) { r.readableEmitted = true; stream.emit('readable'); }
      r.needReadable = !r.flowing && !r.ended && r.length <= r.highWaterMark;
      flow(stream);
    });
  };
  const flow = (stream) => {
    const r = stream._readableState;
    while (r.flowing && stream.read() !== null);
  };
  const endReadable = (stream) => {
    const r = stream._readableState;
    if (r.endEmitted || r.ending) return;
    r.ending = true;
    later(() => {
      if (stream.errored || r.endEmitted || r.length > 0) { r.ending = false; return; }
      r.endEmitted = true;
      stream.emit('end');
      const w = stream._writableState;
      if (w && stream.allowHalfOpen === false && !w.ending) later(() => stream.end());
      else done(stream);
    });
  };
  const take = (r, count) => {
    if (r.length === 0) return null;
    let chunk;
    if (r.objectMode) chunk = r.buffer.shift();
    else if (count === undefined || count >= r.length) {
      chunk = r.buffer.length === 1 ? r.buffer[0] : r.decoder ? r.buffer.join('') : Buffer.concat(r.buffer, r.length);
      r.buffer = [];
    } else {
      const all = r.buffer.length === 1 ? r.buffer[0] : r.decoder ? r.buffer.join('') : Buffer.concat(r.buffer, r.length);
      chunk = all.slice(0, count);
      r.buffer = [all.slice(count)];
    }
    r.length -= r.objectMode ? 1 : chunk.length;
    return chunk;
  };
  const readableMethods = {
    read(size = undefined) {
      const r = this._readableState;
      let count = size === undefined || size !== size ? undefined : +size;
      if (count === 0 && r.needReadable && ((r.highWaterMark !== 0 ? r.length >= r.highWaterMark : r.length > 0) || r.ended)) {
        if (r.length === 0 && r.ended) endReadable(this);
        else emitReadable(this);
        return null;
      }
      if (count > r.highWaterMark) r.highWaterMark = count;
      if (count !== undefined && count !== 0 && !r.objectMode && count > r.length) {
        if (r.ended) count = r.length; else { r.needReadable = true; pull(this); return null; }
      }
      if (count === undefined && r.flowing && r.length > 0 && !r.objectMode) count = r.buffer[0].length;
      const left = r.length - (count === undefined ? (r.objectMode ? Math.min(1, r.length) : r.length) : count);
      if (left === 0 || left < r.highWaterMark || r.needReadable) pull(this);
      const chunk = count === 0 ? null : take(r, count);
      if (chunk === null) {
        r.needReadable = r.length <= r.highWaterMark;
      }
      if (r.length === 0) {
        if (!r.ended) r.needReadable = true;
        if (r.ended) endReadable(this);
      }
      if (chunk !== null && !this.errored && !this._life.closeEmitted) { r.dataEmitted = true; this.emit('data', chunk); }
      return chunk;
    },
    push(chunk, encoding) { return add(this, chunk, encoding, false); },
    unshift(chunk, encoding) { return add(this, chunk, encoding, true); },
    _read() { throw error('ERR_METHOD_NOT_IMPLEMENTED', 'The _read() method is not implemented'); },
    setEncoding(encoding) { setEncoding(this, encoding); return this; },
    isPaused() { return this._readableState.paused || this._readableState.flowing === false; },
    pause() {
      const r = this._readableState;
      if (r.flowing !== false) { r.flowing = false; this.emit('pause'); }
      r.paused = true;
      return this;
    },
    resume() {
      const r = this._readableState;
      if (!r.flowing) {
        r.flowing = !r.readableListening;
        if (!r.resumeScheduled) {
          r.resumeScheduled = true;
          later(() => {
            if (!r.reading) this.read(0);
            r.resumeScheduled = false;
            this.emit('resume');
            flow(this);
            if (r.flowing && !r.reading) this.read(0);
          });
        }
      }
      r.paused = false;
      return this;
    },
    on(name, listener) {
      const result = Stream.prototype.on.call(this, name, listener);
      const r = this._readableState;
      if (name === 'data') {
        r.readableListening = this.listenerCount('readable') > 0;
        if (r.flowing !== false) this.resume();
      } else if (name === 'readable' && !r.endEmitted && !r.readableListening) {
        r.readableListening = r.needReadable = true;
        r.flowing = false;
        if (r.length > 0) emitReadable(this);
        else if (!r.reading) later(() => this.read(0));
      }
      return result;
    },
    removeListener(name, listener) {
      const result = Stream.prototype.removeListener.call(this, name, listener);
      if (name === 'readable') later(() => relisten(this));
      return result;
    },
    removeAllListeners(...names) {
      const result = Stream.prototype.removeAllListeners.apply(this, names);
      if (names[0] === 'readable' || names.length === 0) later(() => relisten(this));
      return result;
    },
    pipe(target, options) {
      const r = this._readableState;
      r.pipes.push(target);
      let waits = false;
      const onData = (chunk) => {
        if (target.write(chunk) === false && !waits) { waits = true; r.awaitDrain++; this.pause(); target.on('drain', onDrain); }
      };
      const onDrain = () => {
        target.removeListener('drain', onDrain);
        waits = false;
        if (--r.awaitDrain === 0 && this.listenerCount('data') > 0) this.resume();
      };
      const onEnd = () => target.end();
      const onError = (failed) => {
        this.unpipe(target);
        target.removeListener('error', onError);
        if (target.listenerCount('error') === 0) {
          if (target._life && !target._life.errorEmitted) fail(target, failed); else target.emit('error', failed);
        }
      };
      const onClose = () => this.unpipe(target);
      const clean = (source) => {
        if (source !== this) return;
        target.removeListener('unpipe', clean);
        target.removeListener('drain', onDrain);
        target.removeListener('error', onError);
        target.removeListener('close', onClose);
        target.removeListener('finish', onClose);
        this.removeListener('end', onEnd);
        this.removeListener('end', onClose);
        this.removeListener('data', onData);
        if (waits) onDrain();
      };
      const ends = options?.end !== false && target !== process.stdout && target !== process.stderr;
      if (r.endEmitted) later(ends ? onEnd : onClose); else this.once('end', ends ? onEnd : onClose);
      target.on('unpipe', clean);
      this.on('data', onData);
      target.prependListener?.('error', onError);
      target.once?.('close', onClose);
      target.once?.('finish', onClose);
      target.emit?.('pipe', this);
      if (!r.flowing) this.resume();
      return target;
    },
    unpipe(target = undefined) {
      const r = this._readableState;
      const gone = target === undefined ? r.pipes.splice(0) : r.pipes.filter((pipe) => pipe === target);
      if (target !== undefined) r.pipes = r.pipes.filter((pipe) => pipe !== target);
      if (gone.length > 0 && r.pipes.length === 0) this.pause();
      for (const pipe of gone) pipe.emit('unpipe', this, { hasUnpiped: false });
      return this;
    },
    wrap(old) {
      old.on('data', (chunk) => { if (!this.push(chunk)) old.pause?.(); });
      old.on('end', () => this.push(null));
      old.on('error', (failed) => fail(this, failed));
      old.on('close', () => done(this));
      this._read = () => old.resume?.();
      return this;
    },
    [Symbol.asyncIterator]() { return this.iterator(); },
    async* iterator(options = undefined) {
      let wake = () => {};
      const next = () => new Promise((resolve) => { wake = resolve; });
      const onReadable = () => wake();
      this.on('readable', onReadable);
      let end;
      const stop = finished(this, { writable: false }, (failed) => { end = failed ?? null; wake(); });
      try {
        for (;;) {
          const chunk = this.destroyed ? null : this.read();
          if (chunk !== null) yield chunk;
          else if (end) throw end;
          else if (end === null) return;
          else await next();
        }
      } catch (thrown) {
        end = thrown;
        throw thrown;
      } finally {
        stop();
        this.removeListener('readable', onReadable);
        if ((end || options?.destroyOnReturn !== false) && (end === undefined || this._life.autoDestroy)) this.destroy();
      }
    },
  };
  readableMethods.addListener = readableMethods.on;
  readableMethods.off = readableMethods.removeListener;
  const relisten = (stream) => {
    const r = stream._readableState;
    r.readableListening = stream.listenerCount('readable') > 0;
    if (r.resumeScheduled && !r.paused) r.flowing = true;
    else if (stream.listenerCount('data') > 0) stream.resume();
    else if (!r.readableListening) r.flowing = null;
  };
  const pull = (stream) => {
    const r = stream._readableState;
    if (r.ended || r.reading || stream.destroyed || stream.errored) return;
    if (!stream._life.constructed) { stream._life.waiting.push(() => more(stream)); return; }
    r.reading = true;
    r.sync = true;
    if (r.length === 0) r.needReadable = true;
    try { stream._read(r.highWaterMark); } catch (thrown) { fail(stream, thrown); }
    r.sync = false;
  };
  for (const name of Reflect.ownKeys(readableMethods)) Readable.prototype[name] = readableMethods[name];
  Object.assign(Readable.prototype, lifeMethods);
  accessors(Readable.prototype, lifeAccessors);
  const readableAccessors = {
    get readable() { const r = this._readableState; return Boolean(r) && r.readable !== false && !this.destroyed && !this.errored && !r.endEmitted; },
    set readable(value) { if (this._readableState) this._readableState.readable = Boolean(value); },
    get readableFlowing() { return this._readableState.flowing; },
    set readableFlowing(value) { this._readableState.flowing = value; },
    get readableLength() { return this._readableState.length; },
    get readableHighWaterMark() { return this._readableState.highWaterMark; },
    get readableObjectMode() { return this._readableState?.objectMode ?? false; },
    get readableEncoding() { return this._readableState?.encoding ?? null; },
    get readableEnded() { return this._readableState?.endEmitted ?? false; },
    get readableDidRead() { return this._readableState.dataEmitted; },
    get readableAborted() { return (this.destroyed || Boolean(this.errored)) && !this._readableState.endEmitted; },
    get readableBuffer() { return this._readableState?.buffer; },
  };
  accessors(Readable.prototype, readableAccessors);

  const marks = (objectMode) => (objectMode ? objectMark : bytesMark);
  const setMark = (objectMode, value) => { if (objectMode) objectMark = value; else bytesMark = value; };
  return {
    Stream, Readable, markOf, begin, lifeMethods, lifeAccessors, accessors, fail, done, later, startReadable, marks, setMark,
  };
}
