const { produce, enablePatches, produceWithPatches, applyPatches, enableMapSet, current, isDraft } = require('immer');
enablePatches(); enableMapSet();
const base = { todos: [{ text: 'a', done: false }], tags: new Set(['x']), map: new Map([['k', { n: 1 }]]) };
const next = produce(base, (draft) => {
  draft.todos[0].done = true;
  draft.todos.push({ text: 'b', done: false });
  draft.tags.add('y');
  draft.map.get('k').n++;
  console.log(isDraft(draft), current(draft).todos.length);
});
console.log(base, next, base.todos === next.todos, Object.isFrozen(next), Object.isFrozen(next.todos[0]));
const [after, patches, inverse] = produceWithPatches({ a: { b: 1 }, l: [1, 2, 3] }, (d) => { d.a.b = 2; delete d.l[0]; d.c = 'new'; });
console.log(after, patches, inverse, applyPatches(after, inverse));
try { next.todos[0].text = 'no'; console.log('ignored'); } catch (e) { console.log(e.name); }
