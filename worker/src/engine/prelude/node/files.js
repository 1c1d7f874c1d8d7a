// Open files of `fs`: descriptors and `FileHandle`. The host has none. A descriptor is the path with a copy of the content, which is read
// when it is first needed: what others write to the file later is not seen. What a descriptor writes is written at once. Also functions
// that are made of others.
0,function (_own, native, captured) {
  'use strict';
  const { ArrayBuffer, Buffer, Map, Math, Number, Object, Symbol, Uint8Array } = captured.globals;
  const { argumentType, checks, error } = captured.part('node_errors');
  const codes = captured.part('node_errno').numbers;
  const MOST = 1024;
  const numbers = { O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024 };
  const texts = {
    r: 0, rs: 0, sr: 0, 'r+': 2, 'rs+': 2, w: 577, wx: 705, 'w+': 578, 'wx+': 706, a: 1089, ax: 1217, 'a+': 1090, 'ax+': 1218, as: 1089, 'as+': 1090,
  };
  const failed = (code, words, syscall, path = undefined) => {
    const thrown = error(code, `${code}: ${words}, ${syscall}${path === undefined ? '' : ` '${path}'`}`);
    return Object.assign(thrown, { errno: -codes[code], syscall }, path === undefined ? {} : { path });
  };
  const bytesOf = (data, encoding) => {
    if (typeof data === 'string') return native.encode(data, encoding ?? 'utf8');
    if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    throw argumentType('buffer', ['string', 'Buffer', 'TypedArray', 'DataView'], data);
  };

  const make = (fs) => {
    const open = new Map();
    let last = 19;
    const fileOf = (fd, syscall) => {
      checks.integer(fd, 'fd', 0, 2147483647);
      const file = open.get(fd);
      if (file === undefined) throw failed('EBADF', 'bad file descriptor', syscall);
      return file;
    };
    const content = (file) => (file.content ??= new Uint8Array(fs.readFileSync(file.path)));
    const openSync = (path, flags = 'r', mode = 0o666) => {
      const how = typeof flags === 'number' ? flags : texts[flags ?? 'r'];
      if (how === undefined) throw error('ERR_INVALID_ARG_VALUE', `The argument 'flags' is invalid. Received '${flags}'`);
      if (open.size >= MOST) throw failed('EMFILE', 'too many open files', 'open', path);
      const creates = (how & numbers.O_CREAT) !== 0;
      const exists = fs.existsSync(path);
      if (!creates || exists) {
        const isFolder = fs.statSync(path).isDirectory();
        if (isFolder) throw failed('EISDIR', 'illegal operation on a directory', 'open', path);
      }
      if (creates && (!exists || (how & (numbers.O_EXCL | numbers.O_TRUNC)) !== 0)) {
        fs.writeFileSync(path, '', { flag: (how & numbers.O_EXCL) !== 0 ? 'wx' : 'w', mode });
      } else if (!creates && (how & numbers.O_TRUNC) !== 0) fs.writeFileSync(path, '', { flag: 'w' });
      if ((how & 3) !== numbers.O_WRONLY) fs.accessSync(path, 4);
      if ((how & 3) !== numbers.O_RDONLY) fs.accessSync(path, 2);
      const fd = ++last;
      open.set(fd, { path, how, position: 0, content: undefined });
      return fd;
    };
    const closeSync = (fd) => {
      fileOf(fd, 'close');
      open.delete(fd);
    };
    const readSync = (fd, buffer, offsetOrOptions = undefined, length = undefined, position = undefined) => {
      const file = fileOf(fd, 'read');
      if (!ArrayBuffer.isView(buffer)) throw argumentType('buffer', ['Buffer', 'TypedArray', 'DataView'], buffer);
      let offset = offsetOrOptions;
      if (offset !== null && typeof offset === 'object') ({ offset, length, position } = offset);
      offset ??= 0;
      length ??= buffer.byteLength - offset;
      checks.integer(offset, 'offset', 0, buffer.byteLength);
      checks.integer(length, 'length', 0, buffer.byteLength - offset);
      if ((file.how & 3) === numbers.O_WRONLY) throw failed('EBADF', 'bad file descriptor', 'read');
      const at = typeof position === 'number' && position >= 0 ? position : typeof position === 'bigint' ? Number(position) : file.position;
      const piece = content(file).subarray(at, at + length);
      new Uint8Array(buffer.buffer, buffer.byteOffset + offset, piece.length).set(piece);
      if (at === file.position && !(typeof position === 'number' && position >= 0)) file.position += piece.length;
      return piece.length;
    };
    const writeBytes = (file, bytes, position) => {
      if ((file.how & 3) === numbers.O_RDONLY) throw failed('EBADF', 'bad file descriptor', 'write');
      const size = file.content?.length ?? fs.statSync(file.path).size;
      const appends = (file.how & numbers.O_APPEND) !== 0;
      const at = appends ? size : position ?? file.position;
      if (at === size) {
        fs.appendFileSync(file.path, bytes);
        file.content = undefined;
      } else {
        const before = content(file);
        const all = new Uint8Array(Math.max(before.length, at + bytes.length));
        all.set(before);
        all.set(bytes, at);
        fs.writeFileSync(file.path, all);
        file.content = all;
      }
      if (typeof position !== 'number') file.position = at + bytes.length;
      return bytes.length;
    };
    const writeSync = (fd, data, offsetOrPosition = undefined, lengthOrEncoding = undefined, position = undefined) => {
      const file = fileOf(fd, 'write');
      if (typeof data === 'string') return writeBytes(file, bytesOf(data, lengthOrEncoding), offsetOrPosition ?? undefined);
      let offset = offsetOrPosition;
      let length = lengthOrEncoding;
      if (offset !== null && typeof offset === 'object') ({ offset, length, position } = offset);
      const bytes = bytesOf(data);
      offset ??= 0;
      length ??= bytes.length - offset;
      checks.integer(offset, 'offset', 0, bytes.length);
      checks.integer(length, 'length', 0, bytes.length - offset);
      return writeBytes(file, bytes.subarray(offset, offset + length), position ?? undefined);
    };
    const resize = (file, length) => {
      const before = content(file);
      const all = new Uint8Array(length);
      all.set(before.subarray(0, length));
      fs.writeFileSync(file.path, all);
      file.content = all;
    };
    const sync = {
      open: openSync, close: closeSync, read: readSync, write: writeSync,
      fstat: (fd) => fs.statSync(fileOf(fd, 'fstat').path),
      fsync: (fd) => { fileOf(fd, 'fsync'); }, fdatasync: (fd) => { fileOf(fd, 'fdatasync'); },
      ftruncate: (fd, length = 0) => resize(fileOf(fd, 'ftruncate'), length ?? 0),
      truncate: (path, length = 0) => {
        fs.accessSync(path, 2);
        resize({ path }, length ?? 0);
      },
      readAll: (fd) => {
        const file = fileOf(fd, 'read');
        const bytes = Buffer.from(content(file).subarray(file.position));
        file.position += bytes.length;
        return bytes;
      },
      readv: (fd, buffers, position = undefined) => {
        let all = 0;
        for (const buffer of buffers) {
          const count = readSync(fd, buffer, 0, buffer.byteLength, typeof position === 'number' ? position + all : undefined);
          all += count;
          if (count < buffer.byteLength) break;
        }
        return all;
      },
      writev: (fd, buffers, position = undefined) => writeSync(fd, Buffer.concat(buffers.map((buffer) => bytesOf(buffer))), 0, undefined, position),
      cp: (from, to, options = undefined) => {
        const copy = (source, target) => {
          if (options?.filter !== undefined && !options.filter(source, target)) return;
          if (fs.statSync(source).isDirectory()) {
            if (options?.recursive !== true) throw error('ERR_FS_EISDIR', `Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${source} is a directory (not copied)) ${source}`);
            fs.mkdirSync(target, { recursive: true });
            for (const name of fs.readdirSync(source)) copy(`${source}/${name}`, `${target}/${name}`);
            return;
          }
          const exists = fs.existsSync(target);
          if (exists && options?.force === false) {
            if (options?.errorOnExist === true) throw error('ERR_FS_CP_EEXIST', `Target already exists: cp returned EEXIST (${target} already exists) ${target}`);
            return;
          }
          fs.copyFileSync(source, target);
        };
        copy(`${from}`.replace(/(.)\/+$/, '$1'), `${to}`.replace(/(.)\/+$/, '$1'));
      },
      opendir: (path) => new Dir(path, fs.readdirSync(path, { withFileTypes: true })),
    };
    class Dir {
      #entries; #closed = false;
      constructor(path, entries) {
        this.path = path;
        this.#entries = entries;
      }
      readSync() {
        if (this.#closed) throw error('ERR_DIR_CLOSED', 'Directory handle was closed');
        return this.#entries.shift() ?? null;
      }
      async read() { return this.readSync(); }
      closeSync() {
        if (this.#closed) throw error('ERR_DIR_CLOSED', 'Directory handle was closed');
        this.#closed = true;
      }
      async close() { this.closeSync(); }
      async* [Symbol.asyncIterator]() {
        try {
          for (let entry = this.readSync(); entry !== null; entry = this.readSync()) yield entry;
        } finally {
          this.closeSync();
        }
      }
    }

    const { events: EventEmitter } = captured.part('node_events');
    class FileHandle extends EventEmitter {
      #fd;
      constructor(fd) {
        super();
        this.#fd = fd;
      }
      get fd() { return this.#fd; }
      async read(buffer = undefined, ...more) {
        let [into, rest] = [buffer, more];
        if (into === undefined || (into !== null && typeof into === 'object' && !ArrayBuffer.isView(into))) {
          rest = [{ offset: into?.offset, length: into?.length, position: into?.position }];
          into = into?.buffer ?? Buffer.alloc(16384);
        }
        return { bytesRead: readSync(this.#fd, into, ...rest), buffer: into };
      }
      async write(data, ...more) { return { bytesWritten: writeSync(this.#fd, data, ...more), buffer: data }; }
      async readv(buffers, position) { return { bytesRead: sync.readv(this.#fd, buffers, position), buffers }; }
      async writev(buffers, position) { return { bytesWritten: sync.writev(this.#fd, buffers, position), buffers }; }
      async readFile(options = undefined) {
        const encoding = typeof options === 'string' ? options : options?.encoding;
        const bytes = sync.readAll(this.#fd);
        return encoding ? bytes.toString(encoding) : bytes;
      }
      async writeFile(data, options = undefined) { writeSync(this.#fd, bytesOf(data, typeof options === 'string' ? options : options?.encoding)); }
      async appendFile(data, options = undefined) { return this.writeFile(data, options); }
      async stat() { return sync.fstat(this.#fd); }
      async truncate(length = 0) { sync.ftruncate(this.#fd, length); }
      async sync() { sync.fsync(this.#fd); }
      async datasync() { sync.fdatasync(this.#fd); }
      async close() {
        if (this.#fd === -1) return;
        closeSync(this.#fd);
        this.#fd = -1;
        this.emit('close');
      }
      async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() { await this.close(); }
      createReadStream(options = undefined) { return this.#closing(fs.createReadStream(fileOf(this.#fd, 'read').path, options)); }
      createWriteStream(options = undefined) {
        const file = fileOf(this.#fd, 'write');
        return this.#closing(fs.createWriteStream(file.path, { flags: 'a', ...options }));
      }
      #closing(stream) {
        stream.on('close', () => { this.close(); });
        return stream;
      }
      readLines(options = undefined) { return captured.part('node_more').readline.createInterface({ input: this.createReadStream(options), crlfDelay: Infinity }); }
    }
    const promises = { async open(path, flags = 'r', mode = undefined) { return new FileHandle(openSync(path, flags, mode)); } };
    for (const name of ['truncate', 'cp', 'opendir']) promises[name] = async (...args) => sync[name](...args);
    return { sync, promises, FileHandle, Dir };
  };
  return { make };
}
