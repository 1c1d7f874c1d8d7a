// `path.win32`. Paths of Windows, as texts: a device (`C:`, `\\server\share`), a root, names.
0,function (_own, _native, captured) {
  'use strict';
  const { check, names, basename, extname, format, matchesGlob } = captured.part('node_path').shared;
  const slashes = (text) => text.replaceAll('\\', '/');
  const backslashes = (text) => text.replaceAll('/', '\\');
  const isSlash = (character) => character === '/' || character === '\\';
  const rootOf = (path) => {
    const share = /^[\\/]{2}([^\\/]+)[\\/]+([^\\/]+)[\\/]?/.exec(path);
    if (share !== null) return { device: `\\\\${share[1]}\\${share[2]}`, absolute: true, end: share[0].length };
    if (/^[A-Za-z]:/.test(path)) {
      const absolute = isSlash(path[2]);
      return { device: path.slice(0, 2), absolute, end: absolute ? 3 : 2 };
    }
    const absolute = isSlash(path[0]);
    return { device: '', absolute, end: absolute ? 1 : 0 };
  };
  const win32Normalize = (path) => {
    if (check(path) === '') return '.';
    const { device, absolute, end } = rootOf(path);
    let clean = backslashes(names(slashes(path.slice(end)), absolute));
    if (clean === '' && !absolute) clean = '.';
    if (clean !== '' && isSlash(path[path.length - 1])) clean += '\\';
    return `${device}${absolute ? '\\' : ''}${clean}`;
  };
  const win32Join = (...parts) => {
    const given = parts.filter((part) => check(part) !== '');
    if (given.length === 0) return '.';
    const joined = given.join('\\');
    // Only a first part that names a share may begin with two slashes.
    return win32Normalize(/^[\\/]{2}[^\\/]/.test(given[0]) ? joined : joined.replace(/^[\\/]{2,}/, '\\'));
  };
  const win32Resolve = (...parts) => {
    let [device, tail, absolute] = ['', '', false];
    for (let i = parts.length - 1; i >= -1 && !(absolute && device !== ''); i--) {
      const path = i === -1 ? captured.globals.process.cwd() : check(parts[i], `paths[${i}]`);
      if (path === '') continue;
      const root = rootOf(path);
      if (root.device !== '') {
        if (device !== '' && root.device.toLowerCase() !== device.toLowerCase()) continue;
        device ||= root.device;
      }
      if (absolute) continue;
      tail = `${path.slice(root.end)}\\${tail}`;
      absolute = root.absolute;
    }
    tail = backslashes(names(slashes(tail), absolute));
    return `${device}${absolute ? '\\' : ''}${tail}` || '.';
  };
  const win32Relative = (from, to) => {
    const [start, end] = [win32Resolve(check(from, 'from')), win32Resolve(check(to, 'to'))];
    const split = (path) => path.split('\\').filter((name) => name !== '');
    const [a, b] = [split(start), split(end)];
    let same = 0;
    while (same < a.length && same < b.length && a[same].toLowerCase() === b[same].toLowerCase()) same++;
    if (same === 0 && a.length > 0) return end;
    return [...a.slice(same).map(() => '..'), ...b.slice(same)].join('\\');
  };
  const withoutEnd = (text) => text.replace(/[\\/]+$/, '');
  const win32Basename = (path, suffix = undefined) => {
    check(path);
    const rest = withoutEnd(/^[A-Za-z]:/.test(path) ? path.slice(2) : path);
    return basename(rest.slice(Math.max(rest.lastIndexOf('/'), rest.lastIndexOf('\\')) + 1), suffix);
  };
  const win32Dirname = (path) => {
    if (check(path) === '') return '.';
    const { end } = rootOf(path);
    const rest = withoutEnd(path.slice(end));
    const at = Math.max(rest.lastIndexOf('/'), rest.lastIndexOf('\\'));
    if (at !== -1) return path.slice(0, end) + withoutEnd(rest.slice(0, at));
    return end > 0 ? path.slice(0, end) : '.';
  };
  const win32Extname = (path) => extname(win32Basename(path));
  return {
    resolve: win32Resolve, normalize: win32Normalize, isAbsolute: (path) => rootOf(check(path)).absolute, join: win32Join, relative: win32Relative,
    toNamespacedPath: (path) => {
      if (typeof path !== 'string' || path === '') return path;
      const full = win32Resolve(path);
      if (/^\\\\[^?.]/.test(full)) return `\\\\?\\UNC\\${full.slice(2)}`;
      return /^[A-Za-z]:\\/.test(full) ? `\\\\?\\${full}` : full;
    },
    dirname: win32Dirname, basename: win32Basename, extname: win32Extname,
    format: (object) => {
      const text = format({ ...object, dir: '', root: '' });
      const dir = object.dir || object.root;
      if (!dir) return text;
      return dir === object.root ? `${dir}${text}` : `${dir}\\${text}`;
    },
    parse: (path) => {
      const base = win32Basename(path);
      const ext = win32Extname(path);
      const { end } = rootOf(path);
      const dir = win32Dirname(path);
      return { root: path.slice(0, end), dir: dir === '.' && !/^\.[\\/]/.test(path) ? '' : dir, base, ext, name: ext === '' ? base : base.slice(0, -ext.length) };
    },
    matchesGlob: (path, pattern) => matchesGlob(slashes(check(path)), slashes(check(pattern, 'pattern'))),
  };
}
