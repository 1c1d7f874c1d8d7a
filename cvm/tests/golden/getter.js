// Paused in a getter that a destructuring reads, in a conversion, in a template and in a computed key.
class Reading {
  #count = 0;
  get value() { this.#count++; return CC(`getter ${this.#count}`); }
  set value(text) { this.kept = CC(`setter ${text}`); }
  toString() { return CC('toString'); }
  get count() { return this.#count; }
}
function main() {
  const reading = new Reading();
  const { value, missing = CC('default'), ...rest } = reading;
  reading.value = value;
  const object = { [reading]: `${reading} and ${reading.value}` };
  return [value, missing, rest, object, reading.kept, reading.count];
}
