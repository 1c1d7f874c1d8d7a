// @planexecutor: walks through a plan with an agent, one task at a time; each task is a pause, so that the walk goes on after
// any crash. `PLAN` and `DONE` (ids of blocks that are done already) stand at the end of this text; `env.PLAN_DONE`, a JSON
// list of ids, counts instead of `DONE` if it is there.

// Attempts to fix one thing, and repetitions of a question that was not answered in its form, before the walk stops.
const MOST_FIXES = 10;
const MOST_QUESTIONS = 5;
// What is remembered of each block for the later ones, in characters.
const NOTES_LENGTH = 2000;

const done = [];
const notes = [];

class Stopped extends Error {}

function passed(answer) {
  return String(answer).trim().toLowerCase().startsWith('passed');
}

// What stands above every task of a block.
function heading(block, phase) {
  const place = PLAN.blocks.indexOf(block) + 1;
  return `[${block.id}] ${phase} (block ${place} of ${PLAN.blocks.length}: ${block.title})\n${block.planRef}\nMission: ${PLAN.mission}\n`;
}

function remembered() {
  return notes.length === 0 ? '' : `\nNotes of earlier blocks:\n${notes.map((n) => `[${n.id}] ${n.text}`).join('\n')}\n`;
}

function about(block) {
  return `\nAbout this block:\n${block.intro}\n${remembered()}`;
}

function red(block) {
  CC(`${heading(block, 'RED')}${about(block)}\nWrite these tests and nothing else. Run them: each must fail, because what it tests is not there yet.\n${block.red}\n\nAnswer with what you wrote and how each test fails.`);
}

function green(block) {
  CC(`${heading(block, 'GREEN')}\nWrite the least code with which the tests of this block pass:\n${block.red}\n\nAnswer with what you changed.`);
}

function execute(block) {
  CC(`${heading(block, 'EXECUTE')}${about(block)}\nDo the following, in this order:\n${block.red}\n\nAnswer with what you did.`);
}

function fix(block, wrong, round) {
  CC(`${heading(block, `FIX ${round} of ${MOST_FIXES}`)}\nThis is not right yet:\n${wrong}\n\nFind the cause and fix it there. Answer with what you changed.`);
}

// Asks whether everything is as it should be, and has it fixed until it is.
function verify(block) {
  const question = `Check each of these yourself, by running what can be run:\n${block.success}\n\nAnswer "passed" if all of them hold; otherwise say which do not, and what you saw.`;
  let answer = CC(`${heading(block, 'VERIFY')}\n${question}`);
  for (let round = 1; !passed(answer); round++) {
    if (round > MOST_FIXES) throw new Stopped(`it was not right after ${MOST_FIXES} fixes: ${answer}`);
    fix(block, answer, round);
    answer = CC(`${heading(block, 'RE-VERIFY')}\n${question}`);
  }
}

// The object in an answer, which may stand in prose or in a fence of backticks.
function objectIn(answer) {
  const text = String(answer);
  const from = text.indexOf('{');
  const to = text.lastIndexOf('}');
  if (from < 0 || to < from) return null;
  try {
    return JSON.parse(text.slice(from, to + 1));
  } catch {
    return null;
  }
}

// The keys of tests that do not exist or do not pass.
function missing(block) {
  const keys = block.redKeys;
  const form = `{${keys.map((key) => `${JSON.stringify(key)}: true`).join(', ')}}`;
  const question = `For each of these tests of the plan, look for the test in the code that stands for it:\n${block.red}\n\nAnswer with JSON of this form and nothing else; false where there is no such test, or where it does not pass:\n${form}`;
  let said = CC(`${heading(block, 'CROSS-CHECK')}\n${question}`);
  for (let asked = 1; ; asked++) {
    const found = objectIn(said);
    const lacks = found === null ? keys : keys.filter((key) => typeof found[key] !== 'boolean');
    if (found !== null && lacks.length === 0) return keys.filter((key) => !found[key]);
    if (asked >= MOST_QUESTIONS) throw new Stopped(`the cross-check was not answered in its form: ${said}`);
    const why = found === null ? 'the last answer was no JSON object' : `the last answer does not say true or false for ${lacks.join(', ')}`;
    said = CC(`${heading(block, 'CROSS-CHECK')}\nOnce more, because ${why}.\n${question}`);
  }
}

function crossCheck(block) {
  let open = missing(block);
  for (let round = 1; open.length > 0; round++) {
    if (round > MOST_FIXES) throw new Stopped(`tests are missing after ${MOST_FIXES} fixes: ${open.join(', ')}`);
    fix(block, `The plan has tests that are not there, or do not pass:\n${open.join('\n')}`, round);
    open = missing(block);
  }
}

function finish(block) {
  const text = String(CC(`${heading(block, 'NOTES')}\nWhat must somebody know who works on the later blocks? A few lines; "none" if nothing.`)).trim();
  if (text !== '' && text.toLowerCase() !== 'none') notes.push({ id: block.id, text: text.slice(0, NOTES_LENGTH) });
  CC(`${heading(block, 'COMMIT')}\nCommit the work of this block and nothing else. Answer with the commit.`);
  done.push(block.id);
  console.log(`done: ${block.id}`);
}

function walk(block) {
  if (block.type === 'step') {
    execute(block);
    verify(block);
  } else {
    red(block);
    green(block);
    verify(block);
    crossCheck(block);
  }
  finish(block);
}

// The blocks that `PLAN_DONE` names.
function named(text) {
  let ids;
  try {
    ids = JSON.parse(text);
  } catch (error) {
    ids = undefined;
  }
  if (!Array.isArray(ids)) throw new TypeError('PLAN_DONE must be a JSON list of the ids of blocks, such as ["01-first"]');
  for (const id of ids) {
    if (!PLAN.blocks.some((block) => block.id === id)) console.warn(`PLAN_DONE: the plan has no block ${id}`);
  }
  return ids;
}

function main() {
  const before = new Set(env.PLAN_DONE === undefined ? DONE : named(env.PLAN_DONE));
  for (const block of PLAN.blocks) {
    if (before.has(block.id)) {
      done.push(block.id);
      console.log(`done before: ${block.id}`);
      continue;
    }
    try {
      walk(block);
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      console.warn(`stopped: ${block.id}: ${error.message}`);
      return { state: 'stopped', block: block.id, reason: error.message, done, notes };
    }
  }
  const list = PLAN.blocks.map((block) => `- ${block.id}: ${block.title}`).join('\n');
  const review = CC(`FINAL REVIEW\nMission: ${PLAN.mission}\n\nAll blocks are done:\n${list}\n${remembered()}\nLook at the whole as a stranger would: does it serve the mission, is anything left half done, do all tests pass? Answer with your findings.`);
  return { state: 'completed', done, notes, review };
}
