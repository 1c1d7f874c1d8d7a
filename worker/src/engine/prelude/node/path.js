// `node:path`. Paths of a session are those of POSIX and begin at its worktree, which is `/`.
0,function (_own, _native, captured) {
  'use strict';
  const { invalidType } = captured;
  const { Math } = captured.globals;
  const check = (value, name = 'path') => {
    if (typeof value === 'string') return value;
    throw invalidType(`The "${name}" argument must be of type string. Received ${captured.part('node_errors').received(value)}`);
  };
  // Names without empty ones and `.`; `..` removes the name before it, where there is one.
  const names = (path, absolute) => {
    const list = [];
    for (const name of path.split('/')) {
      if (name === '' || name === '.') continue;
      if (name !== '..') list.push(name);
      else if (list.length > 0 && list[list.length - 1] !== '..') list.pop();
      else if (!absolute) list.push('..');
    }
    return list.join('/');
  };
  const isAbsolute = (path) => check(path).startsWith('/');
  const normalize = (path) => {
    if (check(path) === '') return '.';
    const absolute = path.startsWith('/');
    let clean = names(path, absolute);
    if (clean === '') return absolute ? '/' : path.endsWith('/') ? './' : '.';
    if (path.endsWith('/')) clean += '/';
    return absolute ? `/${clean}` : clean;
  };
  const join = (...parts) => {
    const given = parts.filter((part) => check(part) !== '');
    return given.length === 0 ? '.' : normalize(given.join('/'));
  };
  const resolve = (...parts) => {
    let path = '';
    for (let i = parts.length - 1; i >= 0 && !path.startsWith('/'); i--) {
      const part = check(parts[i], `paths[${i}]`);
      if (part !== '') path = path === '' ? part : `${part}/${path}`;
    }
    return `/${names(path.startsWith('/') ? path : `${captured.globals.process.cwd()}/${path}`, true)}`;
  };
  const relative = (from, to) => {
    check(from, 'from');
    check(to, 'to');
    if (from === to) return '';
    const split = (path) => resolve(path).split('/').filter((name) => name !== '');
    const [a, b] = [split(from), split(to)];
    let same = 0;
    while (same < a.length && same < b.length && a[same] === b[same]) same++;
    return [...a.slice(same).map(() => '..'), ...b.slice(same)].join('/');
  };
  // The path without slashes at its end; `/` for nothing but slashes.
  const trimmed = (path) => {
    let end = path.length;
    while (end > 1 && path[end - 1] === '/') end--;
    return path.slice(0, end);
  };
  const dirname = (path) => {
    if (check(path) === '') return '.';
    const short = trimmed(path);
    const at = short.lastIndexOf('/');
    if (at === -1) return '.';
    if (at === 0) return '/';
    if (at === 1 && short[0] === '/') return '//';
    return short.slice(0, at);
  };
  const basename = (path, suffix = undefined) => {
    check(path);
    if (suffix !== undefined) check(suffix, 'suffix');
    const short = trimmed(path);
    const base = short === '/' ? '' : short.slice(short.lastIndexOf('/') + 1);
    if (suffix === undefined || suffix === base || !base.endsWith(suffix)) return suffix === path ? '' : base;
    return base.slice(0, base.length - suffix.length);
  };
  const extname = (path) => {
    const base = basename(check(path));
    const at = base.lastIndexOf('.');
    return at <= 0 || base === '..' ? '' : base.slice(at);
  };
  const parse = (path) => {
    const root = isAbsolute(path) ? '/' : '';
    const base = basename(path);
    const ext = extname(path);
    const short = trimmed(path);
    const at = short.lastIndexOf('/');
    const dir = path === '' || at === -1 ? '' : at === 0 ? '/' : short.slice(0, at);
    return { root, dir, base, ext, name: ext === '' ? base : base.slice(0, base.length - ext.length) };
  };
  const format = (object) => {
    if (object === null || typeof object !== 'object') {
      throw invalidType(`The "pathObject" argument must be of type object. Received ${captured.part('node_errors').received(object)}`);
    }
    const dir = object.dir || object.root;
    const dot = object.ext && object.ext[0] !== '.' ? '.' : '';
    const base = object.base || `${object.name || ''}${object.ext ? dot + object.ext : ''}`;
    if (!dir) return base;
    return dir === object.root ? `${dir}${base}` : `${dir}/${base}`;
  };
  // `*` and `?` within a name, `**` over names.
  const matchesGlob = (path, pattern) => {
    const source = check(pattern, 'pattern').replace(/[.+^${}()|[\]\\]|\*\*\/?|\*|\?/g, (text) => {
      if (text === '**/') return '(?:.*/)?';
      if (text === '**') return '.*';
      if (text === '*') return '[^/]*';
      return text === '?' ? '[^/]' : `\\${text}`;
    });
    return new captured.globals.RegExp(`^${source}$`).test(check(path));
  };
  const path = {
    resolve, normalize, isAbsolute, join, relative, toNamespacedPath: (path) => path, dirname, basename, extname, format, parse,
    matchesGlob, sep: '/', delimiter: ':', posix: undefined, win32: undefined,
  };
  path.posix = path;
  // Most programs use none of these: they are compiled at the first call.
  const win32 = { sep: '\\', delimiter: ';', posix: path, win32: undefined };
  for (const name of captured.globals.Object.keys(path)) {
    if (typeof path[name] !== 'function') continue;
    win32[name] = { [name]: (...given) => captured.part('node_path_win32')[name](...given) }[name];
  }
  win32.win32 = win32;
  path.win32 = win32;
  return { path, win32, shared: { check, names, basename, extname, format, matchesGlob } };
}
