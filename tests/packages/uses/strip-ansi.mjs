import strip from 'strip-ansi';
console.log(JSON.stringify([strip('\u001B[4mUnicorn\u001B[0m'), strip('\u001B]8;;https://x.test\u0007Click\u001B]8;;\u0007'), strip('\u001b[38;5;1mred\u001b[39m plain'), strip('')]));
try { strip(5); } catch (e) { console.log(e.name, e.message); }
