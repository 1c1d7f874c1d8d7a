// Requests: `vm-system run --net api.github.com fetch.js`
const response = await fetch('https://api.github.com/repos/rust-lang/rust', { headers: { accept: 'application/json' } });
if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
const { full_name: name, stargazers_count: stars } = await response.json();
console.log(`${name} has ${stars} stars`);

// What no row allows is refused, with the reason.
try {
  await fetch('http://169.254.169.254/');
} catch (error) {
  console.log(error.cause.code);
}
