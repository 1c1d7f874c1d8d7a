const words = ['zebra', 'Äpfel', 'apple', 'Zoo', 'éclair', 'eclair', 'Apple', 'ß', 'ss', '10', '9', '2', 'a-b', 'ab', 'naïve', 'naive', '日本', 'Ωmega', '_x', ' x', 'ö', 'o', 'z'];
console.log([...words].sort((a, b) => a.localeCompare(b)).join(' '));
console.log([...words].sort((a, b) => a.localeCompare(b, undefined, { numeric: true, sensitivity: 'base' })).join(' '));
console.log([...words].sort((a, b) => a.localeCompare(b, 'sv')).join(' '));
console.log([...words].sort((a, b) => a.localeCompare(b, ['de'], { ignorePunctuation: true })).join(' '));
console.log('a'.localeCompare('b'), 'b'.localeCompare('a'), 'a'.localeCompare('a'), 'a'.localeCompare('A'), 'a'.localeCompare('á', 'en', { sensitivity: 'base' }), 'a'.localeCompare('A', 'en', { sensitivity: 'accent' }), 'a'.localeCompare('á', 'en', { sensitivity: 'case' }), 'a'.localeCompare('A', 'en', { sensitivity: 'case' }), 'o\u0308'.localeCompare('ö'));
console.log((1234567.891).toLocaleString(), (1e6).toLocaleString('en-US'), (0.1 + 0.2).toLocaleString(), (-5).toLocaleString(['en']), 12345678901234567890n.toLocaleString(), [1234.5, null, 'x', 5n].toLocaleString());
console.log(new Date(1e12).toLocaleString(), '|', new Date(1e12).toLocaleDateString('en-US'), '|', new Date(NaN).toLocaleTimeString());
console.log('ǅ i ß'.toLocaleUpperCase(), 'ΑΣ I'.toLocaleLowerCase('de'), 'x'.toLocaleUpperCase(['fr', 'tr']));
