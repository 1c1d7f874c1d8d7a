// A state of many pages: two thousand objects, long lists, maps and texts that grew piece by piece, and holes that the collector left.
const list = [], map = new Map(), set = new Set(), object = {};
let text = '', wide = '';
for (let i = 0; i < 2000; i++) {
  list.push({ id: i, name: `object number ${i}`, next: list[i - 1] ?? null });
  map.set(`key ${i}`, i); set.add(i * 3); object[`property ${i % 300}`] = i;
  text += `piece ${i} `; if (i % 4 === 0) wide += `☃${i}`;
}
let garbage = []; for (let i = 0; i < 30000; i++) garbage.push([i]); garbage = null;
for (let i = 0; i < 30000; i++) [i, String(i)];
for (let i = 0; i < 2000; i += 3) map.delete(`key ${i}`);
function main() {
  const first = CC('pages'); list.push(first); text += first; map.set(first, 1); object.last = first;
  const second = CC('more pages'); list[7].name = second;
  let depth = 0; for (let at = list[1999]; at; at = at.next) depth++;
  return [list.length, depth, list[7].name, map.size, set.size, text.length, text.slice(-30), wide.length, Object.keys(object).length, map.get('key 7')];
}
