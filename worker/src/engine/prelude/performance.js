// Marks and measures of `performance`. `now` and `timeOrigin` exist from the start.
0,function (_own, native, captured) {
  'use strict';
  const { TypeError, Object, DOMException, structuredClone } = captured.globals;
  const { coded, invalidType } = captured;
  const { enumerable, illegal, tag } = captured.part('classes');
  const secret = {};
  const now = () => native.nanoseconds() / 1e6;

  class PerformanceEntry {
    #name; #type; #start; #duration; #detail;
    constructor(key = undefined, name = undefined, type = undefined, start = undefined, duration = undefined, detail = undefined) {
      if (key !== secret) throw illegal();
      this.#name = name;
      this.#type = type;
      this.#start = start;
      this.#duration = duration;
      this.#detail = detail;
    }
    get name() { return this.#name; }
    get entryType() { return this.#type; }
    get startTime() { return this.#start; }
    get duration() { return this.#duration; }
    get detail() { return this.#detail; }
    toJSON() { return { name: this.#name, entryType: this.#type, startTime: this.#start, duration: this.#duration, detail: this.#detail }; }
    static {
      captured.showAs((object) => (#name in object ? { name: object.#name, entryType: object.#type, startTime: object.#start,
        duration: object.#duration, detail: object.#detail } : undefined));
    }
  }
  enumerable(PerformanceEntry.prototype, ['name', 'entryType', 'startTime', 'duration', 'detail', 'toJSON']);
  tag(PerformanceEntry.prototype, 'PerformanceEntry');
  class PerformanceMark extends PerformanceEntry {
    constructor(name, options = undefined) {
      if (arguments.length === 0) throw coded(new TypeError('The "name" argument must be specified'), 'ERR_MISSING_ARGS');
      const start = options?.startTime ?? now();
      if (typeof start !== 'number') throw invalidType('The "options.startTime" property must be of type number.');
      if (start < 0) throw coded(new TypeError(`${start} is not a valid timestamp`), 'ERR_PERFORMANCE_INVALID_TIMESTAMP');
      const detail = options?.detail;
      super(secret, `${name}`, 'mark', start, 0, detail === undefined || detail === null ? null : structuredClone(detail));
    }
  }
  tag(PerformanceMark.prototype, 'PerformanceMark');
  class PerformanceMeasure extends PerformanceEntry {
    constructor(key = undefined, ...rest) {
      if (key !== secret) throw illegal();
      super(key, ...rest);
    }
  }
  tag(PerformanceMeasure.prototype, 'PerformanceMeasure');

  // In order of their start. Old ones are dropped: a session may run for months.
  const MOST = 10_000;
  let entries = [];
  const add = (entry) => {
    let at = entries.length;
    while (at > 0 && entries[at - 1].startTime > entry.startTime) at -= 1;
    entries.splice(at, 0, entry);
    if (entries.length > MOST) entries.shift();
    return entry;
  };
  const timeOf = (mark) => {
    if (typeof mark === 'number') {
      if (mark < 0) throw coded(new TypeError(`${mark} is not a valid timestamp`), 'ERR_PERFORMANCE_INVALID_TIMESTAMP');
      return mark;
    }
    const name = `${mark}`;
    for (let i = entries.length - 1; i >= 0; i--) {
      if (entries[i].entryType === 'mark' && entries[i].name === name) return entries[i].startTime;
    }
    const error = new DOMException(`The "${name}" performance mark has not been set`, 'SyntaxError');
    throw error;
  };
  const clear = (type, name) => {
    const kept = [];
    for (const entry of entries) {
      if (entry.entryType !== type || (name !== undefined && entry.name !== `${name}`)) kept.push(entry);
    }
    entries = kept;
  };
  const filter = (wanted) => {
    const found = [];
    for (const entry of entries) if (wanted(entry)) found.push(entry);
    return found;
  };
  const methods = {
    mark(name, options = undefined) { return add(new PerformanceMark(...arguments)); },
    measure(name, startOrOptions = undefined, endMark = undefined) {
      const text = `${name}`;
      const options = typeof startOrOptions === 'object' && startOrOptions !== null ? startOrOptions : undefined;
      if (options !== undefined && options.start === undefined && options.end === undefined) {
        throw coded(new TypeError('One of options.start or options.end is required'), 'ERR_MISSING_ARGS');
      }
      const last = options === undefined ? endMark : options.end;
      const length = options?.duration;
      const first = options === undefined ? startOrOptions : options.start;
      const end = last !== undefined ? timeOf(last)
        : first !== undefined && length !== undefined ? timeOf(first) + +length : now();
      const start = first !== undefined ? timeOf(first) : length !== undefined ? end - +length : 0;
      const detail = options?.detail;
      return add(new PerformanceMeasure(secret, text, 'measure', start, end - start,
        detail === undefined || detail === null ? null : structuredClone(detail)));
    },
    clearMarks(name = undefined) { clear('mark', name); },
    clearMeasures(name = undefined) { clear('measure', name); },
    getEntries() { return [...entries]; },
    getEntriesByName(name, type = undefined) {
      return filter((entry) => entry.name === `${name}` && (type === undefined || entry.entryType === type));
    },
    getEntriesByType(type) { return filter((entry) => entry.entryType === type); },
    toJSON() { const { performance } = captured.globals; return { timeOrigin: performance.timeOrigin }; },
  };
  return { PerformanceEntry, PerformanceMark, PerformanceMeasure, methods };
}
