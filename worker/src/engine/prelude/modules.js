// What the host modules share: `require`, the table of their makers, and errors. A module is made on first use, since
// most sessions never ask for it. Everything of the language that runs later is captured here: a script may replace it,
// and a policy may take it away.
0,function (native, captured) {
  'use strict';
  const ErrorCtor = Error;
  const TypeErrorCtor = TypeError;
  const { defineProperty } = Object;
  const { max } = Math;
  const has = (names, name) => { for (let i = 0; i < names.length; i++) if (names[i] === name) return true; return false; };

  captured.coded = (error, code) => { error.code = code; return error; };
  // A text of another encoding as the bytes that it means.
  captured.encoded = (chunk, encoding) => {
    if (typeof chunk !== 'string' || typeof encoding !== 'string' || encoding === 'utf8' || encoding === 'utf-8') return chunk;
    const { Buffer } = captured.globals;
    if (Buffer.isEncoding(encoding)) return Buffer.from(chunk, encoding);
    throw captured.coded(new TypeErrorCtor(`Unknown encoding: ${encoding}`), 'ERR_UNKNOWN_ENCODING');
  };
  captured.invalidType = (message) => captured.coded(new TypeErrorCtor(message), 'ERR_INVALID_ARG_TYPE');
  captured.invalidValue = (message) => captured.coded(new TypeErrorCtor(message), 'ERR_INVALID_ARG_VALUE');
  captured.hostError = (code, message) => captured.coded(new ErrorCtor(message), code);

  captured.makeRequire = (referrer, cache) => {
    const specifierOf = (specifier) => {
      if (typeof specifier === 'string' && specifier !== '') return specifier;
      throw captured.invalidType(`The "id" argument must be a non-empty string. Received ${typeof specifier}`);
    };
    const require = function require(id) { return native.require(specifierOf(id), referrer); };
    require.resolve = function resolve(id, options = undefined) {
      const paths = options?.paths;
      if (paths === undefined) return native.resolve(specifierOf(id), referrer);
      let failed;
      for (const path of paths) {
        try { return native.resolve(specifierOf(id), `${captured.relative(path)}/_`); } catch (error) { failed = error; }
      }
      throw failed;
    };
    require.resolve.paths = (id) => (native.isBuiltin(specifierOf(id)) ? null : captured.nodeModulePaths(folderOf(referrer)));
    require.cache = cache;
    require.main = captured.mainModule;
    require.extensions = extensions;
    captured.requireCache = cache;
    return require;
  };
  // Paths of modules are relative to the worktree, which is `/` elsewhere.
  const { replace, lastIndexOf, slice } = String.prototype;
  const text = (value, method, ...args) => captured.apply(method, value, args);
  captured.relative = (path) => text(text(`${path}`, replace, /^\/+/, ''), replace, /\/+$/, '');
  const folderOf = (path) => text(path, slice, 0, max(text(path, lastIndexOf, '/'), 0));
  const extensions = { __proto__: null, '.js': undefined, '.json': undefined, '.node': undefined };
  captured.nodeModulePaths = (from) => {
    const paths = [];
    for (let folder = captured.relative(from); ; folder = folderOf(folder)) {
      const name = text(folder, slice, text(folder, lastIndexOf, '/') + 1);
      if (name !== 'node_modules') paths[paths.length] = folder === '' ? 'node_modules' : `${folder}/node_modules`;
      if (folder === '') return paths;
    }
  };
  // Of the program that a file is; `module` in each file.
  function Module(id = '', parent = undefined) {
    this.id = id;
    this.path = folderOf(id) || '.';
    this.exports = {};
    this.filename = id === '' ? null : id;
    this.loaded = false;
    this.children = [];
    if (parent !== undefined) parent.children[parent.children.length] = this;
    defineProperty(this, 'parent', { value: parent, writable: true, configurable: true, enumerable: false });
  }
  defineProperty(Module.prototype, 'paths', {
    get() { return captured.nodeModulePaths(this.path); },
    set(paths) { defineProperty(this, 'paths', { value: paths, writable: true, configurable: true, enumerable: true }); },
    configurable: true,
  });
  captured.Module = Module;
  captured.newModule = (path, require, requiredBy) => {
    const main = captured.mainModule;
    const parent = requiredBy === undefined ? undefined : captured.requireCache[requiredBy] ?? (main?.filename === requiredBy ? main : undefined);
    const module = new Module(path, parent);
    defineProperty(module, 'require', { value: require, writable: true, configurable: true, enumerable: false });
    return module;
  };
  captured.setMain = (module, require) => {
    module.id = '.';
    captured.mainModule = module;
    require.main = module;
  };

  const makers = { __proto__: null };
  const made = { __proto__: null };
  captured.hostModuleNames = [];
  captured.defineModule = (names, make) => {
    for (const name of names) captured.hostModuleNames[captured.hostModuleNames.length] = name;
    for (const name of names) makers[name] = () => make(name);
  };
  captured.hostModule = (name) => (made[name] ??= makers[name]());
  captured.includes = has;
}
