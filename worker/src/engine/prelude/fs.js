// The `fs` host module, read part. `native.fs(kind, path, flag)` asks the host and throws nothing: it gives
// [value] or [undefined, code, message]. Makes the module on first use, since most sessions never ask for it.
(function (native, captured) {
  'use strict';
  const errnos = {
    __proto__: null, EPERM: -1, ENOENT: -2, EIO: -5, EACCES: -13, EEXIST: -17, ENOTDIR: -20, EISDIR: -21, EINVAL: -22,
    EMFILE: -24, EFBIG: -27, ENAMETOOLONG: -36, ELOOP: -40,
  };
  const texts = {
    __proto__: null, EPERM: 'operation not permitted', ENOENT: 'no such file or directory', EIO: 'i/o error',
    EACCES: 'permission denied', EEXIST: 'file already exists', ENOTDIR: 'not a directory',
    EISDIR: 'illegal operation on a directory', EINVAL: 'invalid argument', EMFILE: 'too many open files',
    EFBIG: 'file too large', ENAMETOOLONG: 'name too long', ELOOP: 'too many symbolic links encountered',
  };

  const make = () => {
    const pathOf = (path) => {
      if (typeof path === 'string' && !path.includes('\0')) return path;
      if (path instanceof Uint8Array) return native.decode(path, 'utf8', false);
      const error = new TypeError(typeof path === 'string'
        ? 'The argument \'path\' must be a string without null bytes.'
        : 'The "path" argument must be of type string or an instance of Buffer.');
      error.code = typeof path === 'string' ? 'ERR_INVALID_ARG_VALUE' : 'ERR_INVALID_ARG_TYPE';
      throw error;
    };
    const call = (kind, syscall, path, flag) => {
      path = pathOf(path);
      const [value, code, message] = native.fs(kind, path, flag);
      if (code === undefined) return value;
      const error = new Error(texts[code] ? `${code}: ${texts[code]}, ${syscall} '${path}'` : `${code}: ${message}`);
      if (errnos[code] !== undefined) error.errno = errnos[code];
      error.code = code;
      error.syscall = syscall;
      error.path = path;
      throw error;
    };
    const encodingOf = (options) => (typeof options === 'string' ? options : options?.encoding ?? null);

    class Stats {
      constructor(raw) {
        this.size = raw.size;
        this.mode = raw.mode;
        for (const name of ['atime', 'mtime', 'ctime']) this[`${name}Ms`] = raw[`${name}Ms`];
        for (const name of ['atime', 'mtime', 'ctime']) this[name] = new Date(raw[`${name}Ms`]);
        Object.defineProperty(this, 'kind', { value: raw.kind });
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
        Object.defineProperty(this, 'kind', { value: kind });
      }
      get path() { return this.parentPath; }
    }
    for (const name of ['isFile', 'isDirectory', 'isSymbolicLink', 'isFIFO', 'isSocket', 'isBlockDevice', 'isCharacterDevice']) {
      Object.defineProperty(Dirent.prototype, name, Object.getOwnPropertyDescriptor(Stats.prototype, name));
    }

    const sync = {
      readFile(path, options) {
        const encoding = encodingOf(options);
        if (encoding === null || encoding === 'buffer') return captured.toBuffer(call('read', 'open', path, ''));
        return call('read', 'open', path, encoding);
      },
      readdir(path, options) {
        const walk = (folder, prefix) => {
          const found = [];
          for (const [name, kind] of call('readdir', 'scandir', folder)) {
            found.push(options?.withFileTypes ? new Dirent(name, folder, kind) : prefix + name);
            if (options?.recursive && kind === 'directory') found.push(...walk(`${folder}/${name}`, `${prefix}${name}/`));
          }
          return found;
        };
        return walk(pathOf(path), '');
      },
      stat(path, options) {
        try {
          return new Stats(call('stat', 'stat', path, false));
        } catch (error) {
          if (options?.throwIfNoEntry === false && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
          throw error;
        }
      },
      lstat(path, options) {
        try {
          return new Stats(call('stat', 'lstat', path, true));
        } catch (error) {
          if (options?.throwIfNoEntry === false && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
          throw error;
        }
      },
      access(path, mode) {
        call('stat', 'access', path, false);
        if (mode & 2) {
          const error = new Error(`EACCES: permission denied, access '${pathOf(path)}'`);
          throw Object.assign(error, { errno: -13, code: 'EACCES', syscall: 'access', path: pathOf(path) });
        }
      },
      exists(path) {
        try { return call('exists', 'access', path); } catch { return false; }
      },
    };
    const later = (work, callback, spread) => {
      if (typeof callback !== 'function') {
        const error = new TypeError('The "cb" argument must be of type function.');
        error.code = 'ERR_INVALID_ARG_TYPE';
        throw error;
      }
      let error = null;
      let value;
      try { value = work(); } catch (thrown) { error = thrown; }
      native.immediateAdd(callback, spread ? [value] : error ? [error] : [null, value]);
    };

    const fs = {};
    const promises = {};
    for (const name of ['readFile', 'readdir', 'stat', 'lstat', 'access']) {
      fs[`${name}Sync`] = { [`${name}Sync`](path, options) { return sync[name](path, options); } }[`${name}Sync`];
      fs[name] = { [name](path, options, callback) {
        if (typeof options === 'function') [options, callback] = [undefined, options];
        later(() => sync[name](path, options), callback, false);
      } }[name];
      promises[name] = { async [name](path, options) { return sync[name](path, options); } }[name];
    }
    fs.existsSync = function existsSync(path) { return sync.exists(path); };
    fs.exists = function exists(path, callback) { later(() => sync.exists(path), callback, true); };
    fs.promises = promises;
    fs.constants = promises.constants = Object.freeze({ __proto__: null, F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 });
    fs.Stats = Stats;
    fs.Dirent = Dirent;
    return fs;
  };
  captured.makeRequire = (referrer, cache) => {
    const specifierOf = (specifier) => {
      if (typeof specifier === 'string' && specifier !== '') return specifier;
      const error = new TypeError(`The "id" argument must be a non-empty string. Received ${typeof specifier}`);
      error.code = 'ERR_INVALID_ARG_TYPE';
      throw error;
    };
    const require = function require(id) { return native.require(specifierOf(id), referrer); };
    require.resolve = (id) => native.resolve(specifierOf(id), referrer);
    require.cache = cache;
    require.main = undefined;
    return require;
  };
  let fs;
  captured.hostModule = (name) => {
    fs ??= make();
    return name === 'fs/promises' ? fs.promises : fs;
  };
})
