// ES modules: static and dynamic imports of worktree files, JSON, top-level await, a host module.
// vm-system run examples/modules/main.mjs
import { readFile } from 'node:fs/promises';
import { median, percentile } from './statistics.mjs';
import inventory from '../data/inventory.json' with { type: 'json' };

const counts = inventory.shelves.flatMap(({ items }) => items.map(({ count }) => count));
console.log('counts', counts);
console.log('median', median(counts), 'p90', percentile(counts, 0.9));

const { banner } = await import('./banner.mjs');
const readme = await readFile('examples/data/README.md', 'utf8');
console.log(banner(readme.split('\n')[0].replace(/^#\s*/, '')));
