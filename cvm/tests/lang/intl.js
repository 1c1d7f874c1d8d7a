const n = new Intl.NumberFormat('de-CH', { style: 'currency', currency: 'CHF' });
const d = new Date(Date.UTC(2026, 0, 5, 15, 4, 5));
console.log(n.format(1234567.891), n.formatToParts(1).map((part) => part.type).join(' '), CC('one'));
console.log([1234.5, 5n, d, null, 'x'].toLocaleString('de'), (0.256).toLocaleString('en', { style: 'percent', maximumFractionDigits: 1 }));
console.log((12345).toLocaleString('ja', { notation: 'compact' }), 12345678901234567890n.toLocaleString('hi'), (1.5).toLocaleString('ar', { minimumFractionDigits: 2 }));
console.log(d.toLocaleDateString('fr', { dateStyle: 'full' }), '|', d.toLocaleTimeString('en-GB', { timeZone: 'America/New_York' }), '|', d.toLocaleString('sv', { timeZoneName: 'short' }));
console.log(new Intl.DateTimeFormat('de', { timeZone: 'Europe/Berlin', hour: 'numeric', minute: '2-digit' }).formatToParts(d).map((part) => part.value).join('·'));
console.log(new Intl.DateTimeFormat().resolvedOptions().timeZone, new Date(NaN).toLocaleString('de', null));
console.log(['z', 'ä', 'a', 'Z'].sort(new Intl.Collator('de', { caseFirst: 'upper' }).compare).join(), ['9', '10', '1'].sort(Intl.Collator('en', { numeric: true }).compare).join());
console.log('iı'.toLocaleUpperCase('tr'), 'IİΣ'.toLocaleLowerCase(['tr', 'de']), '\ud800i'.toLocaleUpperCase('tr').length);
for (const granularity of ['grapheme', 'word', 'sentence']) {
  const segments = new Intl.Segmenter('en', { granularity }).segment('Hi, 👩‍💻! It’s 3.5. Ok?');
  const list = [];
  for (const { segment, isWordLike } of segments) list.push(isWordLike === false ? `(${segment})` : segment);
  console.log(list.join('|'), segments.containing(5).index, segments.containing(99));
  if (granularity === 'word') CC('two');
}
console.log(new Intl.ListFormat('es').format(['a', 'i']), new Intl.RelativeTimeFormat('de', { numeric: 'auto' }).format(1, 'days'), new Intl.PluralRules('en', { type: 'ordinal' }).select(22));
console.log(new Intl.DisplayNames('fr', { type: 'language' }).of('de-AT'), new Intl.DisplayNames('en', { type: 'script', fallback: 'none' }).of('Zzzx'));
const l = new Intl.Locale('zh-tw-u-nu-latn', { region: 'HK', numeric: true, calendar: 'gregory' });
console.log(`${l}`, l.language, l.region, l.numeric, l.calendar, l.baseName, l.maximize().script, `${new Intl.Locale(l.maximize()).minimize()}`);
console.log(Intl.getCanonicalLocales(['EN-us', 'iw', new Intl.Locale('de')]).join(), Intl.NumberFormat.supportedLocalesOf(['xx', 'de-u-nu-arab']).join());
console.log(structuredClone(new Intl.NumberFormat('de').resolvedOptions()).locale, JSON.stringify(n), Object.keys(n).length);
