const path = require('node:path');
const paths = ['', '/', '//', 'a', '/a/', 'a/b', './a', '../a', '..', 'a/../..', '/a/../..', 'a/b/../c/', '.bashrc', 'a.b.c', 'a.', '...', 'a//b'];
for (const p of paths) {
  console.log([p, path.normalize(p), path.dirname(p), path.basename(p), path.extname(p), path.isAbsolute(p)], path.parse(p));
  for (const q of ['x', '../y', '/z', '']) console.log(path.join(p, q), path.resolve('/w', p, q), path.relative(`/w/${p}`, `/w/${q}`));
}
console.log(path.format({ dir: '/d', name: 'n', ext: 'e' }), path.basename('a/b.html', '.html'), path.sep, path.delimiter, path.posix === path);
for (const bad of [1, null, undefined, {}]) try { path.join('a', bad); } catch (e) { console.log(e.name, e.code, e.message); }
