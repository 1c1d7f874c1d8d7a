// Text in a frame.
export function banner(text) {
  const line = '='.repeat(text.length + 4);
  return `${line}\n| ${text} |\n${line}`;
}
