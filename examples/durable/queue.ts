// Handles jobs one after the other, in the order in which they were sent, however many come while it waits for an answer.
//
//   vm-system program start examples/durable/queue.ts --name queue
//   vm-system event emit job '{"title": "write the release notes"}' --execution queue
//   vm-system task submit queue done
//   vm-system event emit job null --execution queue

type Job = { title: string } | null;

async function main() {
  let handled = 0;
  for (;;) {
    const job: Job = await waitFor("job");
    if (job === null) return { handled };
    const report = CC(`Please: ${job.title}`);
    console.log(`${job.title}: ${report}`);
    handled += 1;
  }
}
