const { minify } = require('terser');
(async () => {
  console.log(await minify('function add(first, second) { const unused = 1; if (false) { dead(); } return first + second; } console.log(add(1, 2)); class A { get x() { return this._x ?? 5; } }', { toplevel: true, compress: { passes: 2 } }));
  console.log((await minify({ 'a.js': 'var aa = 1;', 'b.js': 'export { aa as b };' }, { module: true, sourceMap: { filename: 'o.js' } })).code, (await minify('let x = "a" + 1 + `t${2}`;', { format: { beautify: true, comments: 'all' }, mangle: false })).code);
  try { await minify('let a = = 1'); } catch (e) { console.log(e.name, e.message, e.line, e.col); }
})();
