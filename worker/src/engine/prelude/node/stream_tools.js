// What works on any stream: `finished`, `pipeline`, `Readable.from`, the methods of iterators, and streams of the web.
0,function (_own, _native, captured) {
  'use strict';
  const { Array, Boolean, Number, Object, Promise, Symbol, TypeError, process } = captured.globals;
  const { coded } = captured;
  const { argumentType, checks, error, abort } = captured.part('node_errors');
  const isStream = (value) => value !== null && typeof value === 'object' && typeof value.on === 'function';
  const isIterable = (value) => value !== null && value !== undefined && (typeof value[Symbol.asyncIterator] === 'function' || typeof value[Symbol.iterator] === 'function');

  const finished = (stream, optionsOrCallback, last = undefined) => {
    const callback = typeof optionsOrCallback === 'function' ? optionsOrCallback : last;
    const options = typeof optionsOrCallback === 'function' ? {} : optionsOrCallback ?? {};
    checks.function(callback, 'callback');
    if (!isStream(stream)) throw argumentType('stream', ['ReadableStream', 'WritableStream', 'Stream'], stream);
    const [r, w] = [stream._readableState, stream._writableState];
    const readable = options.readable ?? (r !== undefined && r.readable !== false);
    const writable = options.writable ?? (w !== undefined && w.writable !== false);
    let [readDone, writeDone] = [!readable || r?.endEmitted, !writable || w?.finished];
    let called = false;
    const premature = () => error('ERR_STREAM_PREMATURE_CLOSE', 'Premature close');
    const finish = (failed) => {
      if (called) return;
      called = true;
      callback.call(stream, failed);
    };
    const closes = stream._life?.emitClose && stream._life.autoDestroy;
    const both = () => { if (readDone && writeDone && (!closes || stream.closed)) finish(); };
    const onEnd = () => { readDone = true; if (writeDone) { if (closes && (readable || writable) && !stream._life.closeEmitted && r !== undefined && w === undefined) return; finishSoon(); } };
    const onFinish = () => { writeDone = true; if (readDone) finishSoon(); };
    // A stream that closes by itself is finished when it is closed.
    const finishSoon = () => { if (!closes || stream._life.closeEmitted) finish(); };
    const onError = (failed) => finish(failed);
    const onClose = () => {
      if (stream.errored) { finish(stream.errored); return; }
      if (!readDone && !(r?.endEmitted)) { finish(premature()); return; }
      if (!writeDone && !(w?.finished)) { finish(premature()); return; }
      finish();
    };
    stream.on('end', onEnd);
    stream.on('finish', onFinish);
    if (options.error !== false) stream.on('error', onError);
    stream.on('close', onClose);
    if (stream._life?.closeEmitted || (stream._life?.closed && !stream._life.emitClose)) process.nextTick(onClose);
    else if (stream._life?.errorEmitted) process.nextTick(() => finish(stream.errored));
    else if (readDone && writeDone && !closes) process.nextTick(both);
    const clean = () => {
      called = true;
      stream.removeListener('end', onEnd);
      stream.removeListener('finish', onFinish);
      stream.removeListener('error', onError);
      stream.removeListener('close', onClose);
    };
    if (options.signal) {
      const { signal } = options;
      const onAbort = () => { clean(); callback.call(stream, abort(signal)); };
      if (signal.aborted) process.nextTick(onAbort);
      else signal.addEventListener('abort', onAbort, { once: true });
    }
    return clean;
  };

  const addAbortSignal = (signal, stream) => {
    if (signal === null || typeof signal !== 'object' || !('aborted' in signal)) throw argumentType('signal', 'AbortSignal', signal);
    const onAbort = () => stream.destroy(abort(signal));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    return stream;
  };

  let classes;
  const pipeline = (...given) => {
    let options = {};
    if (given.length > 1 && typeof given.at(-1) !== 'function' && typeof given.at(-2) === 'function' && !isStream(given.at(-1))) options = given.pop();
    const callback = given.pop();
    checks.function(callback, 'streams[stream.length - 1]');
    const parts = given.length === 1 && Array.isArray(given[0]) ? given[0] : given;
    if (parts.length < 2) throw coded(new TypeError('The "streams" argument must be specified'), 'ERR_MISSING_ARGS');
    const streams = [];
    let value;
    let ended = false;
    let pending = 0;
    let problem;
    const finish = (failed) => {
      if (failed && (!problem || problem.code === 'ERR_STREAM_PREMATURE_CLOSE')) problem = failed;
      if (failed) for (const stream of streams) if (!stream.destroyed && !(stream._readableState?.endEmitted && stream._writableState === undefined)) stream.destroy(failed);
      if (pending > 0 && !problem) return;
      if (ended) return;
      ended = true;
      process.nextTick(callback, problem, value);
    };
    const watch = (stream, reading, writing) => {
      streams.push(stream);
      pending++;
      stream.on('error', () => {});
      finished(stream, { readable: reading, writable: writing }, (failed) => { pending--; finish(failed); });
    };
    if (options.signal) {
      const onAbort = () => finish(abort(options.signal));
      if (options.signal.aborted) { process.nextTick(onAbort); return parts.at(-1); }
      options.signal.addEventListener('abort', onAbort, { once: true });
    }
    let source;
    parts.forEach((part, index) => {
      const [first, final] = [index === 0, index === parts.length - 1];
      let current = part;
      if (typeof part === 'function') {
        current = first ? part({ signal: options.signal }) : part(source, { signal: options.signal });
        if (final && !isStream(current) && !(isIterable(current) && typeof current?.then !== 'function')) {
          pending++;
          Promise.resolve(current).then((result) => { value = result; pending--; finish(); }, (failed) => { pending--; finish(failed); });
          source = undefined;
          return;
        }
        if (final && isIterable(current) && !isStream(current)) {
          const sink = new classes.Duplex({ objectMode: true, writable: false });
          from(current, sink);
          watch(sink, true, false);
          source = sink;
          return;
        }
      }
      if (isStream(current)) {
        if (first) watch(current, true, false);
        else {
          watch(current, !final && current._readableState !== undefined, true);
          const reader = isStream(source) ? source : classes.Readable.from(source);
          if (!isStream(source)) watch(reader, true, false);
          if (final && options.end === false) reader.pipe(current, { end: false }); else reader.pipe(current);
        }
      } else if (!isIterable(current)) {
        throw argumentType(`streams[${index}]`, ['Stream', 'Iterable', 'AsyncIterable', 'Function'], current);
      }
      source = current;
    });
    return source;
  };

  // Fills a readable stream with the values of an iterable.
  const from = (iterable, stream) => {
    const iterator = typeof iterable[Symbol.asyncIterator] === 'function' ? iterable[Symbol.asyncIterator]() : iterable[Symbol.iterator]();
    let reading = false;
    stream._read = () => {
      if (reading) return;
      reading = true;
      (async () => {
        for (;;) {
          try {
            const { value, done } = await iterator.next();
            if (done) { stream.push(null); break; }
            const chunk = await value;
            if (chunk === null) throw coded(new TypeError('May not write null values to stream'), 'ERR_STREAM_NULL_VALUES');
            if (!stream.push(chunk)) { reading = false; return; }
          } catch (thrown) {
            stream.destroy(thrown);
            return;
          }
        }
      })();
    };
    stream._destroy = (failed, callback) => {
      const end = async () => { if (failed) await iterator.throw?.(failed)?.catch?.(() => {}); else await iterator.return?.(); };
      end().then(() => callback(failed), (thrown) => callback(failed ?? thrown));
    };
    return stream;
  };

  const install = ({ Readable, Writable, Duplex }) => {
    classes = { Readable, Writable, Duplex };
    Readable.from = (iterable, options = undefined) => {
      if (typeof iterable === 'string' || iterable instanceof captured.globals.Uint8Array) {
        return new Readable({ objectMode: true, ...options, read() { this.push(iterable); this.push(null); } });
      }
      if (!isIterable(iterable)) throw argumentType('iterable', 'Iterable', iterable);
      return from(iterable, new Readable({ objectMode: true, highWaterMark: 1, ...options }));
    };
    const each = (stream, options) => (options?.signal ? addAbortSignal(options.signal, stream) : stream);
    const check = (fn) => { if (typeof fn !== 'function') throw argumentType('fn', ['Function', 'AsyncFunction'], fn); };
    const operators = {
      map(fn, options) { check(fn); const source = each(this, options); return Readable.from((async function* () { for await (const item of source) yield fn(item, { signal: options?.signal }); })()); },
      filter(fn, options) { check(fn); const source = each(this, options); return Readable.from((async function* () { for await (const item of source) if (await fn(item)) yield item; })()); },
      flatMap(fn, options) { check(fn); const source = each(this, options); return Readable.from((async function* () { for await (const item of source) yield* await fn(item); })()); },
      take(count) { const source = this; return Readable.from((async function* () { let left = Number(count); if (left > 0) for await (const item of source) { yield item; if (--left <= 0) return; } })()); },
      drop(count) { const source = this; return Readable.from((async function* () { let left = Number(count); for await (const item of source) if (left-- <= 0) yield item; })()); },
      async forEach(fn, options) { check(fn); for await (const item of each(this, options)) await fn(item); },
      async toArray(options) { const all = []; for await (const item of each(this, options)) all.push(item); return all; },
      async some(fn) { check(fn); for await (const item of this) if (await fn(item)) return true; return false; },
      async every(fn) { check(fn); for await (const item of this) if (!await fn(item)) return false; return true; },
      async find(fn) { check(fn); for await (const item of this) if (await fn(item)) return item; return undefined; },
      async reduce(fn, ...initial) {
        check(fn);
        let [sum, started] = [initial[0], initial.length > 0];
        for await (const item of this) { if (started) sum = await fn(sum, item); else [sum, started] = [item, true]; }
        if (!started) throw new TypeError('Reduce of an empty stream requires an initial value');
        return sum;
      },
    };
    for (const name of Object.keys(operators)) Object.defineProperty(Readable.prototype, name, { value: operators[name], writable: true, configurable: true, enumerable: false });
    const G = captured.globals;
    Readable.fromWeb = (web, options) => Readable.from(web, { objectMode: false, highWaterMark: undefined, ...options });
    Readable.toWeb = (stream) => {
      const iterator = stream[Symbol.asyncIterator]();
      return new G.ReadableStream({
        async pull(controller) {
          const { value, done } = await iterator.next();
          if (done) controller.close();
          else controller.enqueue(Boolean(value) && value instanceof G.Uint8Array ? new G.Uint8Array(value) : value);
        },
        cancel(reason) { stream.destroy(reason); },
      });
    };
    Writable.toWeb = (stream) => new G.WritableStream({
      write: (chunk) => new Promise((resolve, reject) => { stream.write(chunk, (failed) => (failed ? reject(failed) : resolve())); }),
      close: () => new Promise((resolve, reject) => { finished(stream, { readable: false }, (failed) => (failed ? reject(failed) : resolve())); stream.end(); }),
      abort: (reason) => { stream.destroy(reason); },
    });
    Writable.fromWeb = (web) => {
      const writer = web.getWriter();
      return new Writable({
        write: (chunk, _encoding, callback) => { writer.write(chunk).then(() => callback(), callback); },
        final: (callback) => { writer.close().then(() => callback(), callback); },
      });
    };
  };
  const consumers = {
    async buffer(stream) { const all = []; for await (const chunk of stream) all.push(captured.globals.Buffer.from(chunk)); return captured.globals.Buffer.concat(all); },
    async text(stream) { const decoder = new captured.globals.TextDecoder(); let text = ''; for await (const chunk of stream) text += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }); return text + decoder.decode(); },
    async json(stream) { return captured.globals.JSON.parse(await consumers.text(stream)); },
    async arrayBuffer(stream) { const bytes = await consumers.buffer(stream); return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length); },
    async blob(stream) { return new captured.globals.Blob([await consumers.buffer(stream)]); },
  };
  return { finished, pipeline, addAbortSignal, install, consumers };
}
