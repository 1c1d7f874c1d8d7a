import { glob, globSync, hasMagic, escape, globIterate } from 'glob';
import fs from 'node:fs';
for (const f of ['gl/a/x.js', 'gl/a/b/y.js', 'gl/z.md']) { fs.mkdirSync(f.replace(/\/[^/]*$/, ''), { recursive: true }); fs.writeFileSync(f, f); }
console.log((await glob('gl/**/*.js')).sort(), globSync('gl/*').sort(), globSync('**', { cwd: 'gl', nodir: true }).sort(), hasMagic('a?'), escape('a*'));
console.log((await glob('gl/**', { ignore: '**/b/**', withFileTypes: true })).map((p) => [p.name, p.isDirectory(), p.relative()]).sort()); const seen = []; for await (const p of globIterate('gl/a/**')) seen.push(p); console.log(seen.sort());
fs.rmSync('gl', { recursive: true });
