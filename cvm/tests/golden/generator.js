// Paused inside a generator that is driven by a spread, with others suspended at a yield, in `yield*`, and not started.
const log = [];
function* numbers(from) { try { let got = 'none'; while (from < 5) { log.push(got); got = yield from++ + CC(`yield ${from}`); } } finally { log.push('closed'); } }
function* all() { const inner = yield* numbers(3); log.push(`inner ${inner}`); return 'end'; }
const suspended = numbers(0), delegating = all(), fresh = all();
function main() {
  suspended.next(); suspended.next('one');
  delegating.next();
  const rest = [...numbers(3)];
  for (const value of suspended) { log.push(value); if (value.startsWith('3')) break; }
  const [first] = delegating;
  return [rest, log, first, fresh.next().value, suspended.return('over')];
}
