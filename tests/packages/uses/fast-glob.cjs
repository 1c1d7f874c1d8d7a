const fg = require('fast-glob');
const fs = require('fs');
for (const f of ['fg/a/x.js', 'fg/a/b/y.ts', 'fg/a/b/.hidden.js', 'fg/z.md']) { fs.mkdirSync(require('path').dirname(f), { recursive: true }); fs.writeFileSync(f, f); }
console.log(fg.sync('fg/**/*.{js,ts}').sort(), fg.sync(['fg/**', '!**/b/**'], { dot: true }).sort(), fg.sync('**/*.js', { cwd: 'fg', dot: true, onlyFiles: true }).sort(), fg.isDynamicPattern('a*'), fg.escapePath('a(b)'));
fg('fg/*', { onlyDirectories: true, markDirectories: true }).then((r) => console.log(r)).then(() => fg('fg/**/*.md', { objectMode: true })).then((r) => console.log(r.map((e) => [e.name, e.path]))).then(async () => { const l = []; for await (const e of fg.stream('fg/a/*')) l.push(e); console.log(l); fs.rmSync('fg', { recursive: true }); });
