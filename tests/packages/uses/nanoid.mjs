import { nanoid, customAlphabet, customRandom, urlAlphabet } from 'nanoid';
console.log(nanoid().length, nanoid(10).length, /^[\w-]+$/.test(nanoid(500)), urlAlphabet.length, /^[abc]{7}$/.test(customAlphabet('abc', 7)()));
let seed = 1;
console.log(customRandom('abcdefgh', 12, (n) => Uint8Array.from({ length: n }, () => (seed = (seed * 73) % 251)))());
console.log(new Set(Array.from({ length: 2000 }, () => nanoid())).size);
