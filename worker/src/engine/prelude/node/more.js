// Modules on streams: `node:stream` and its parts, streams of `fs`, `node:readline`.
0,function (_own, _native, captured) {
  'use strict';
  const { Buffer, Math, Object, Promise, Symbol, process } = captured.globals;
  const { argumentType, checks, range, unavailable } = captured.part('node_errors');
  const { stream, promises } = captured.part('node_stream');
  const { consumers } = captured.part('node_stream_tools');
  const { events: EventEmitter } = captured.part('node_events');
  const { StringDecoder } = captured.part('node_small').string_decoder;
  const { Readable, Writable } = stream;

  // A file is read as a whole when it is first needed: the host has no open files.
  const pathOf = (path) => (path !== null && typeof path === 'object' && typeof path.href === 'string' ? captured.part('node_url').url.fileURLToPath(path) : path);
  const streamsOf = (fs) => {
    class ReadStream extends Readable {
      #bytes; #at; #end;
      constructor(path, options = undefined) {
        const given = typeof options === 'string' ? { encoding: options } : options ?? {};
        super({ highWaterMark: 65536, ...given });
        this.path = pathOf(path);
        this.flags = given.flags ?? 'r';
        this.start = given.start;
        this.end = given.end ?? Infinity;
        this.bytesRead = 0;
        this.pending = true;
        if (given.start !== undefined) checks.integer(given.start, 'start', 0);
        if (given.end !== undefined && given.end !== Infinity) checks.integer(given.end, 'end', 0);
        if (given.start !== undefined && given.start > this.end) throw range('start', `<= "end" (here: ${this.end})`, given.start);
        this.#at = given.start ?? 0;
      }
      _construct(callback) {
        try {
          this.#bytes = fs.readFileSync(this.path);
          this.#end = Math.min(this.end + 1, this.#bytes.length);
        } catch (thrown) {
          callback(thrown);
          return;
        }
        this.pending = false;
        callback();
        this.emit('open', 3);
        this.emit('ready');
      }
      _read(size) {
        const end = Math.min(this.#at + size, this.#end);
        if (this.#at >= end) { captured.globals.setImmediate(() => { if (!this.destroyed) this.push(null); }); return; }
        const chunk = Buffer.from(this.#bytes.subarray(this.#at, end));
        this.#at = end;
        this.bytesRead += chunk.length;
        captured.globals.setImmediate(() => { if (!this.destroyed) this.push(chunk); });
      }
      close(callback = undefined) { if (callback) this.once('close', callback); this.destroy(); }
    }
    class WriteStream extends Writable {
      constructor(path, options = undefined) {
        const given = typeof options === 'string' ? { encoding: options } : options ?? {};
        super({ ...given, decodeStrings: true, defaultEncoding: given.encoding ?? 'utf8' });
        this.path = pathOf(path);
        this.flags = given.flags ?? 'w';
        this.mode = given.mode ?? 0o666;
        this.bytesWritten = 0;
        this.pending = true;
        if (given.start !== undefined) throw unavailable('createWriteStream with start', 'files are written from their beginning or appended to');
      }
      _construct(callback) {
        try {
          fs.writeFileSync(this.path, '', { flag: this.flags, mode: this.mode });
        } catch (thrown) {
          callback(thrown);
          return;
        }
        this.pending = false;
        callback();
        this.emit('open', 3);
        this.emit('ready');
      }
      _write(chunk, _encoding, callback) {
        try {
          fs.appendFileSync(this.path, chunk);
          this.bytesWritten += chunk.length;
        } catch (thrown) {
          callback(thrown);
          return;
        }
        callback();
      }
      _writev(items, callback) { this._write(Buffer.concat(items.map(({ chunk }) => chunk)), 'buffer', callback); }
      close(callback = undefined) { if (callback) this.once('close', callback); this.end(); }
    }
    return {
      ReadStream, WriteStream, createReadStream: (path, options) => new ReadStream(path, options),
      createWriteStream: (path, options) => new WriteStream(path, options),
    };
  };

  // Lines of a readable stream.
  class Interface extends EventEmitter {
    #input; #output; #rest = ''; #decoder = new StringDecoder('utf8'); #waiting = []; #ended = false; #afterReturn = false;
    constructor(inputOrOptions, output = undefined) {
      super();
      const options = inputOrOptions?.input === undefined ? { input: inputOrOptions, output } : inputOrOptions;
      if (typeof options.input?.on !== 'function') throw argumentType('input', 'Stream', options.input);
      this.#input = options.input;
      this.#output = options.output;
      this.line = '';
      this.terminal = false;
      this.closed = false;
      this.history = [];
      this.#input.on('data', (chunk) => this.#add(typeof chunk === 'string' ? chunk : this.#decoder.write(chunk)));
      this.#input.on('end', () => {
        this.#add(this.#decoder.end());
        if (this.#rest !== '') this.#line(this.#rest);
        this.#rest = '';
        this.close();
      });
      options.signal?.addEventListener('abort', () => this.close(), { once: true });
    }
    #add(given) {
      let text = given;
      if (this.#afterReturn && text.startsWith('\n')) text = text.slice(1);
      if (text !== '') this.#afterReturn = text.endsWith('\r');
      const lines = (this.#rest + text).split(/\r\n|\n|\r|\u2028|\u2029/);
      this.#rest = lines.pop();
      for (const line of lines) this.#line(line);
    }
    #line(line) {
      const asked = this.#waiting.shift();
      if (asked) asked(line);
      else this.emit('line', line);
    }
    question(query, optionsOrCallback, last = undefined) {
      const callback = typeof optionsOrCallback === 'function' ? optionsOrCallback : last;
      checks.function(callback, 'cb');
      this.#output?.write(query);
      this.#waiting.push(callback);
    }
    setPrompt(prompt) { this.prompted = prompt; }
    getPrompt() { return this.prompted ?? '> '; }
    prompt() { this.#output?.write(this.getPrompt()); }
    write(text) { this.#add(`${text}`); }
    pause() { this.#input.pause(); this.emit('pause'); return this; }
    resume() { this.#input.resume(); this.emit('resume'); return this; }
    close() {
      if (this.closed) return;
      this.closed = true;
      this.#input.pause?.();
      this.emit('close');
    }
    [Symbol.asyncIterator]() {
      const lines = EventEmitter.on(this, 'line', { close: ['close'] });
      return {
        next: async () => { const { value, done } = await lines.next(); return done ? { value: undefined, done } : { value: value[0], done }; },
        return: () => { this.close(); return lines.return(); },
        [Symbol.asyncIterator]() { return this; },
      };
    }
  }
  const nothing = (_stream, ...more) => { const callback = more.at(-1); if (typeof callback === 'function') process.nextTick(callback); return true; };
  const readline = {
    Interface, createInterface: (input, output) => new Interface(input, output), clearLine: nothing, clearScreenDown: nothing, cursorTo: nothing, moveCursor: nothing,
    emitKeypressEvents: () => {},
  };
  class PromisesInterface extends Interface {
    question(query) { return new Promise((resolve) => { super.question(query, resolve); }); }
  }
  readline.promises = { Interface: PromisesInterface, createInterface: (input, output) => new PromisesInterface(input, output) };

  const web = { __proto__: null };
  for (const name of ['ReadableStream', 'ReadableStreamDefaultReader', 'ReadableStreamDefaultController', 'ReadableByteStreamController', 'WritableStream',
    'WritableStreamDefaultWriter', 'WritableStreamDefaultController', 'TransformStream', 'TransformStreamDefaultController', 'ByteLengthQueuingStrategy',
    'CountQueuingStrategy', 'TextEncoderStream', 'TextDecoderStream', 'CompressionStream', 'DecompressionStream']) {
    Object.defineProperty(web, name, { get: () => captured.globals[name], enumerable: true, configurable: true });
  }
  return { stream, streamPromises: promises, consumers, web, readline, readlinePromises: readline.promises, streamsOf };
}
