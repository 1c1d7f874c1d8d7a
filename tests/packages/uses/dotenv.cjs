const dotenv = require('dotenv');
const fs = require('fs');
console.log(dotenv.parse(Buffer.from('A=1\nB="two words"\n# no\nexport C=\'single\'\nD=`multi\nline`\nE=a#b # comment\nF=\nG="x\\ny"')));
fs.writeFileSync('made.env', 'FROM_FILE=yes\nHOME_X=abc\n');
console.log(dotenv.config({ path: 'made.env', quiet: true }).parsed, process.env.FROM_FILE);
fs.rmSync('made.env');
console.log(dotenv.config({ path: 'missing.env', quiet: true }).error.code);
