// The `fs` host module. `native.fs(kind, path, more)` asks the host and throws nothing: it gives [value] or
// [undefined, code, message]. Synchronous calls, callbacks and promises are made of the same functions.
0,function (native, captured) {
  'use strict';
  const { defineProperty, freeze, getOwnPropertyDescriptor, assign } = Object;
  const ErrorCtor = Error;
  const RangeErrorCtor = RangeError;
  const DateCtor = Date;
  const Bytes = Uint8Array;
  const { isView } = ArrayBuffer;
  const { floor, random } = Math;
  const errnos = {
    __proto__: null, EPERM: -1, ENOENT: -2, EIO: -5, EAGAIN: -11, ENOMEM: -12, EBADF: -9, EACCES: -13, EBUSY: -16, EEXIST: -17,
    ENOTDIR: -20, EISDIR: -21, EINVAL: -22, EMFILE: -24, ETXTBSY: -26, EFBIG: -27, ENOSPC: -28, EROFS: -30,
    ENAMETOOLONG: -36, ENOTEMPTY: -39, ELOOP: -40, ETIMEDOUT: -110, EDQUOT: -122,
  };
  const { now } = DateCtor;
  // A folder with all below it is listed within the bounds of one call: as many entries, and as long.
  const LIST_ENTRIES = 100000;
  const LIST_MS = 10000;
  const WRITE_BYTES = 1048576;
  const PIECE_BYTES = 65536;
  const setBytes = Bytes.prototype.set;
  const slice = captured.stringSlice;
  const cut = (text, from, to) => captured.apply(slice, text, [from, to]);
  const indexOf = String.prototype.indexOf;
  const find = (text, what, from) => captured.apply(indexOf, text, [what, from]);
  const endsWith = (text, what) => cut(text, -what.length) === what;
  const subarray = Bytes.prototype.subarray;
  const sliceArray = Array.prototype.slice;
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

  const pathOf = (path, name = 'path') => {
    if (typeof path === 'string') {
      if (find(path, '\0', 0) === -1) return path;
      throw captured.invalidValue(`The argument '${name}' must be a string without null bytes.`);
    }
    if (typeof path === 'object' && path !== null && typeof path.href === 'string') {
      return pathOf(captured.part('node_url').url.fileURLToPath(path), name);
    }
    if (path instanceof Bytes) return pathOf(native.decode(path, 'utf8', false), name);
    throw captured.invalidType(`The "${name}" argument must be of type string or an instance of Buffer.`);
  };
  // The host's message is `CODE: words, call 'path'`; here it gets the script's own path and call.
  const fail = (code, message, syscall, path, dest) => {
    const end = find(message, ', ', 0);
    const words = end === -1 ? message : cut(message, 0, end);
    const known = errnos[code] !== undefined;
    const where = dest === undefined ? `'${path}'` : `'${path}' -> '${dest}'`;
    const error = new ErrorCtor(known ? `${words}, ${syscall} ${where}` : message);
    if (known) error.errno = errnos[code];
    error.code = code;
    if (known) error.syscall = syscall;
    if (known) error.path = path;
    if (known && dest !== undefined) error.dest = dest;
    return error;
  };
  const call = (kind, syscall, path, more = [], dest) => {
    const [value, code, message] = native.fs(kind, path, more);
    if (code !== undefined) throw fail(code, message, syscall, path, dest);
    return value;
  };
  // The host has no open files: the descriptors that it knows are those of the standard streams.
  captured.inputError = (code, message) => assign(captured.hostError(code, message), errnos[code] === undefined ? {} : { errno: errnos[code], syscall: 'read' });
  const badDescriptor = (syscall) => captured.coded(new ErrorCtor(`EBADF: bad file descriptor, ${syscall}`), 'EBADF');
  const isInput = (path) => path === 0 || path === '/dev/stdin';
  const readPiece = (most) => {
    const [piece, code, message] = native.stdinRead(most);
    if (code !== undefined) throw captured.inputError(code, message);
    return piece;
  };
  const readInput = () => {
    const pieces = [];
    let length = 0;
    for (let piece = readPiece(PIECE_BYTES); piece !== null; piece = readPiece(PIECE_BYTES)) {
      pieces[pieces.length] = piece;
      length += piece.length;
    }
    const all = new Bytes(length);
    for (let i = 0, at = 0; i < pieces.length; at += pieces[i].length, i++) captured.apply(setBytes, all, [pieces[i], at]);
    return all;
  };
  const readInto = (fd, buffer, offset = 0, length = undefined, position = undefined) => {
    if (fd !== 0) return captured.openFiles().sync.read(fd, buffer, offset, length, position);
    if (!isView(buffer)) throw captured.invalidType('The "buffer" argument must be an instance of Buffer, TypedArray, or DataView.');
    if (offset !== null && typeof offset === 'object') ({ offset = 0, length } = offset);
    const from = offset ?? 0;
    const most = length ?? buffer.byteLength - from;
    if (!(from >= 0 && most >= 0 && from + most <= buffer.byteLength)) {
      throw captured.coded(new RangeErrorCtor('The values of "offset" and "length" are out of range.'), 'ERR_OUT_OF_RANGE');
    }
    const piece = most === 0 ? null : readPiece(most);
    if (piece === null) return 0;
    captured.apply(setBytes, new Bytes(buffer.buffer, buffer.byteOffset + from, piece.length), [piece]);
    return piece.length;
  };
  const writeOutput = (fd, data) => {
    if (fd !== 1 && fd !== 2) throw badDescriptor('write');
    captured.writeText(fd, fd === 1 ? native.stdout : native.stderr, data);
    return typeof data === 'string' ? native.encode(data, 'utf8').length : data.byteLength;
  };
  const encodingOf = (options) => (typeof options === 'string' ? options : options?.encoding ?? null);
  const modeOf = (mode, usual) => {
    if (mode === undefined || mode === null) return usual;
    const number = typeof mode === 'string' ? +`0o${mode}` : mode;
    if (typeof number === 'number' && number >= 0 && number <= 0o7777 && number % 1 === 0) return number;
    throw captured.invalidValue('The "mode" argument must be a number or an octal string.');
  };
  const bytesOf = (data, options) => {
    if (typeof data === 'string') return native.encode(data, encodingOf(options) ?? 'utf8');
    if (isView(data)) return new Bytes(data.buffer, data.byteOffset, data.byteLength);
    throw captured.invalidType(
      'The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView.');
  };
  // create, exclusive, truncate, append
  const flags = {
    __proto__: null,
    w: [true, false, true, false], 'w+': [true, false, true, false], wx: [true, true, true, false],
    'wx+': [true, true, true, false], xw: [true, true, true, false], a: [true, false, false, true],
    'a+': [true, false, false, true], ax: [true, true, false, true], 'ax+': [true, true, false, true],
    as: [true, false, false, true], 'r+': [false, false, false, false], 'rs+': [false, false, false, false],
  };
  const write = (path, data, options, usualFlag) => {
    if (path === 1 || path === 2) { writeOutput(path, bytesOf(data, options)); return; }
    if (typeof path === 'number') { captured.openFiles().sync.write(path, bytesOf(data, options)); return; }
    path = pathOf(path);
    const flag = (typeof options === 'object' && options !== null ? options.flag : undefined) ?? usualFlag;
    const how = flags[flag];
    if (how === undefined) throw captured.invalidValue(`The argument 'flag' is invalid. Received '${String(flag)}'`);
    const mode = modeOf(typeof options === 'object' && options !== null ? options.mode : undefined, 0o666);
    const bytes = bytesOf(data, options);
    const part = (from) => captured.apply(subarray, bytes, [from, from + WRITE_BYTES]);
    if (!how[3] && !how[2] && bytes.length > WRITE_BYTES) {
      throw captured.hostError('EFBIG', `EFBIG: more than ${WRITE_BYTES} bytes cannot be written with the flag '${flag}'`);
    }
    call('write', 'open', path, [part(0), how[0], how[1], how[2], how[3], mode]);
    for (let at = WRITE_BYTES; at < bytes.length; at += WRITE_BYTES) {
      call('write', 'write', path, [part(at), false, false, false, true, mode]);
    }
  };

  class Stats {
    constructor(raw) {
      this.size = raw.size;
      this.mode = raw.mode;
      for (const name of ['atime', 'mtime', 'ctime']) this[`${name}Ms`] = raw[`${name}Ms`];
      for (const name of ['atime', 'mtime', 'ctime']) this[name] = new DateCtor(raw[`${name}Ms`]);
      defineProperty(this, 'kind', { value: raw.kind });
    }
    isFile() { return this.kind === 'file'; }
    isDirectory() { return this.kind === 'directory'; }
    isSymbolicLink() { return this.kind === 'symlink'; }
    isFIFO() { return false; }
    isSocket() { return false; }
    isBlockDevice() { return false; }
    isCharacterDevice() { return false; }
  }
  class Dirent {
    constructor(name, parentPath, kind) {
      this.name = name;
      this.parentPath = parentPath;
      defineProperty(this, 'kind', { value: kind });
    }
    get path() { return this.parentPath; }
  }
  for (const name of ['isFile', 'isDirectory', 'isSymbolicLink', 'isFIFO', 'isSocket', 'isBlockDevice', 'isCharacterDevice']) {
    defineProperty(Dirent.prototype, name, getOwnPropertyDescriptor(Stats.prototype, name));
  }
  const stats = (path, options, syscall, link) => {
    try {
      return new Stats(call('stat', syscall, pathOf(path), [link]));
    } catch (error) {
      if (options?.throwIfNoEntry === false && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
      throw error;
    }
  };
  const below = (folder, name) => (folder === '' || endsWith(folder, '/') ? folder + name : `${folder}/${name}`);

  // How many arguments stand before the options, and the call itself.
  const functions = {
    __proto__: null,
    readFile: [1, (path, options) => {
      const encoding = encodingOf(options);
      if (isInput(path)) {
        const bytes = readInput();
        return encoding === null || encoding === 'buffer' ? captured.toBuffer(bytes) : native.decode(bytes, `${encoding}`, false);
      }
      if (typeof path === 'number') {
        const bytes = captured.openFiles().sync.readAll(path);
        return encoding === null || encoding === 'buffer' ? bytes : native.decode(bytes, `${encoding}`, false);
      }
      if (encoding === null || encoding === 'buffer') return captured.toBuffer(call('read', 'open', pathOf(path), ['']));
      return call('read', 'open', pathOf(path), [`${encoding}`]);
    }],
    writeFile: [2, (path, data, options) => write(path, data, options, 'w')],
    appendFile: [2, (path, data, options) => write(path, data, options, 'a')],
    readdir: [1, (path, options) => {
      const top = pathOf(path);
      const typed = options?.withFileTypes === true;
      const found = [];
      // Level by level, as Node does.
      const folders = [[top, '']];
      const until = now() + LIST_MS;
      for (let i = 0; i < folders.length; i++) {
        if (i > 0 && now() > until) throw fail('ETIMEDOUT', 'ETIMEDOUT: connection timed out, ', 'scandir', top);
        const [folder, prefix] = folders[i];
        const entries = call('readdir', 'scandir', folder);
        for (let j = 0; j < entries.length; j++) {
          if (found.length >= LIST_ENTRIES) throw fail('EFBIG', 'EFBIG: file too large, ', 'scandir', top);
          const [name, kind] = entries[j];
          found[found.length] = typed ? new Dirent(name, folder, kind) : prefix + name;
          if (options?.recursive === true && kind === 'directory') {
            folders[folders.length] = [below(folder, name), `${prefix}${name}/`];
          }
        }
      }
      return found;
    }],
    stat: [1, (path, options) => stats(path, options, 'stat', false)],
    lstat: [1, (path, options) => stats(path, options, 'lstat', true)],
    access: [1, (path, mode) => { call('access', 'access', pathOf(path), [mode === undefined ? 0 : mode & 7]); }],
    realpath: [1, (path) => {
      const found = call('realpath', 'realpath', pathOf(path));
      return found === '.' ? '/' : `/${found}`;
    }],
    mkdir: [1, (path, options) => {
      const recursive = typeof options === 'object' && options !== null && options.recursive === true;
      const mode = modeOf(typeof options === 'object' && options !== null ? options.mode : options, 0o777);
      const given = pathOf(path);
      const made = call('mkdir', 'mkdir', given, [recursive, mode]);
      if (!recursive) return undefined;
      return made !== undefined && cut(given, 0, 1) === '/' ? `/${made}` : made;
    }],
    mkdtemp: [1, (prefix) => {
      prefix = pathOf(prefix, 'prefix');
      for (let attempt = 0; ; attempt++) {
        let path = prefix;
        for (let i = 0; i < 6; i++) path += letters[floor(random() * letters.length)];
        try {
          call('mkdir', 'mkdtemp', path, [false, 0o700]);
          return path;
        } catch (error) {
          if (error.code !== 'EEXIST' || attempt >= 100) throw error;
        }
      }
    }],
    unlink: [1, (path) => { call('unlink', 'unlink', pathOf(path)); }],
    rmdir: [1, (path, options) => {
      path = pathOf(path);
      if (options?.recursive === true) call('rm', 'rmdir', path, [true, false]);
      else call('rmdir', 'rmdir', path);
    }],
    rm: [1, (path, options) => {
      path = pathOf(path);
      try {
        call('rm', 'rm', path, [options?.recursive === true, options?.force === true]);
      } catch (error) {
        if (error.code !== 'EISDIR') throw error;
        const folder = new ErrorCtor(`Path is a directory: rm returned EISDIR (is a directory) ${path}`);
        folder.name = 'SystemError';
        throw assign(folder, { code: 'ERR_FS_EISDIR', errno: 21, syscall: 'rm', path });
      }
    }],
    rename: [2, (from, to) => {
      [from, to] = [pathOf(from, 'oldPath'), pathOf(to, 'newPath')];
      call('rename', 'rename', from, [to], to);
    }],
    copyFile: [2, (from, to, mode) => {
      [from, to] = [pathOf(from, 'src'), pathOf(to, 'dest')];
      call('copy', 'copyfile', from, [to, ((mode ?? 0) & 1) === 1], to);
    }],
  };
  const exists = (path) => { try { return call('exists', 'access', pathOf(path)); } catch { return false; } };
  const callbackOf = (callback) => {
    if (typeof callback === 'function') return callback;
    throw captured.invalidType('The "cb" argument must be of type function.');
  };
  const bound = (callback) => (captured.bindContext === undefined ? callback : captured.bindContext(callback));
  const later = (work, callback) => {
    let error = null;
    let value;
    try { value = work(); } catch (thrown) { error = thrown; }
    native.callAdd(bound(callback), error ? [error] : [null, value]);
  };

  const missing = [
    ['sessions make no links', ['link', 'symlink', 'readlink']],
    ['owners, modes and times of files are not changed', ['chmod', 'chown', 'fchmod', 'fchown', 'futimes', 'lchmod', 'lchown', 'utimes', 'lutimes']],
    ['nothing is known of the file system', ['statfs']],
    ['files are not watched', ['watch', 'watchFile', 'unwatchFile']],
  ];

  const make = () => {
    const fs = {};
    const promises = {};
    for (const name in functions) {
      const [wanted, run] = functions[name];
      fs[`${name}Sync`] = { [`${name}Sync`](a, b, c) { return run(a, b, c); } }[`${name}Sync`];
      fs[name] = { [name](a, b, c, d) {
        const given = [a, b, c, d];
        // The callback is the last argument; options before it may be left out.
        const at = typeof given[wanted] === 'function' ? wanted : wanted + 1;
        const callback = callbackOf(given[at]);
        for (let i = at; i < 4; i++) given[i] = undefined;
        later(() => run(given[0], given[1], given[2]), callback);
      } }[name];
      promises[name] = { async [name](a, b, c) { return run(a, b, c); } }[name];
    }
    fs.existsSync = function existsSync(path) { return exists(path); };
    fs.exists = function exists_(path, callback) { native.callAdd(bound(callbackOf(callback)), [exists(path)]); };
    defineProperty(fs.exists, 'name', { value: 'exists', configurable: true });
    fs.readSync = function readSync(fd, buffer, offset, length, position) { return readInto(fd, buffer, offset, length, position); };
    fs.writeSync = function writeSync(fd, data, ...more) {
      if (fd !== 1 && fd !== 2) return captured.openFiles().sync.write(fd, data, ...more);
      return writeOutput(fd, typeof data === 'string' ? data : bytesOf(data, more[0]));
    };
    fs.write = function write_(fd, data, ...more) {
      const callback = callbackOf(more[more.length - 1]);
      let length = 0;
      let error = null;
      try { length = fs.writeSync(fd, data, ...captured.apply(sliceArray, more, [0, -1])); } catch (thrown) { error = thrown; }
      native.callAdd(bound(callback), error ? [error] : [null, length, data]);
    };
    defineProperty(fs.write, 'name', { value: 'write', configurable: true });
    fs.read = function read(fd, buffer, ...more) {
      const callback = callbackOf(more[more.length - 1]);
      let length = 0;
      let error = null;
      try { length = readInto(fd, buffer, ...captured.apply(sliceArray, more, [0, -1])); } catch (thrown) { error = thrown; }
      native.callAdd(bound(callback), error ? [error] : [null, length, buffer]);
    };
    fs.realpathSync.native = fs.realpathSync;
    fs.promises = promises;
    fs.constants = promises.constants = freeze({
      __proto__: null, F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64,
      O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024,
    });
    // Open files, and what is made of other functions, are a part.
    let files;
    captured.openFiles = () => (files ??= captured.part('node_files').make(fs));
    for (const name of ['open', 'close', 'fstat', 'fsync', 'fdatasync', 'ftruncate', 'truncate', 'readv', 'writev', 'cp', 'opendir']) {
      fs[`${name}Sync`] = { [`${name}Sync`](...args) { return captured.openFiles().sync[name](...args); } }[`${name}Sync`];
      fs[name] = { [name](...args) {
        const callback = callbackOf(args[args.length - 1]);
        later(() => captured.openFiles().sync[name](...captured.apply(sliceArray, args, [0, -1])), callback);
      } }[name];
    }
    for (const name of ['open', 'truncate', 'cp', 'opendir']) {
      promises[name] = { async [name](...args) { return captured.openFiles().promises[name](...args); } }[name];
    }
    fs.realpath.native = fs.realpath;
    let streams;
    const streamed = () => (streams ??= captured.part('node_more').streamsOf(fs));
    fs.createReadStream = function createReadStream(path, options) { return isInput(path) || options?.fd === 0 ? captured.part('node_stdin').open(typeof options === 'string' ? { encoding: options } : options) : streamed().createReadStream(path, options); };
    fs.createWriteStream = function createWriteStream(path, options) { return streamed().createWriteStream(path, options); };
    for (const name of ['ReadStream', 'WriteStream']) {
      defineProperty(fs, name, { get: () => streamed()[name], configurable: true, enumerable: true });
    }
    fs.Stats = Stats;
    fs.Dirent = Dirent;
    // Calls of Node that there are not: refused by name when they are made.
    for (let i = 0; i < missing.length; i++) {
      const [why, names] = missing[i];
      for (let j = 0; j < names.length; j++) {
        const refused = (name) => ({ [name]() { throw captured.part('node_errors').unavailable(`fs.${name}`, why); } }[name]);
        fs[names[j]] = refused(names[j]);
        fs[`${names[j]}Sync`] = refused(`${names[j]}Sync`);
        promises[names[j]] = { async [names[j]]() { throw captured.part('node_errors').unavailable(`fs.promises.${names[j]}`, why); } }[names[j]];
      }
    }
    return fs;
  };
  let fs;
  captured.defineModule(['fs', 'fs/promises'], (name) => {
    fs ??= make();
    return name === 'fs/promises' ? fs.promises : fs;
  });
}
