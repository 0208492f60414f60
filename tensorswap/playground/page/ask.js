// Asks the server. The token comes from the page's own address.

const token = new URLSearchParams(location.search).get("token") ?? "";

export async function gallery() {
  return (await fetch("api/gallery", { headers: { "X-Tensorswap-Token": token } })).json();
}

export async function ask(job, told) {
  let response;
  try {
    response = await fetch(`api/${job}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Tensorswap-Token": token },
      body: JSON.stringify(told),
    });
  } catch {
    return { problem: "The playground's server does not answer. Start it again: tensorswap playground" };
  }
  if (!response.ok) return { problem: await response.text() };
  const answer = await response.json();
  if (answer.broken) return { problem: `A fault of tensorswap: ${answer.broken}. Please report the program.` };
  if (answer.stopped) return { problem: stopped(answer) };
  return answer;
}

function stopped({ stopped: why, seconds, memory }) {
  if (why === "time") return `Stopped: it took longer than ${seconds} seconds. Choose smaller sizes, or a shorter text.`;
  if (why === "memory") return `Stopped: it needed more than ${Math.round(memory / 2 ** 30)} GB. Choose smaller sizes.`;
  if (why === "start") return "The process that does the work did not start. Is there memory left on this machine? Then try again.";
  return "Stopped: the process that did the work ended. Choose smaller sizes, and try again.";
}

// One request at a time; of those that come meanwhile, the last.
export class Latest {
  constructor(job, show) {
    Object.assign(this, { job, show, busy: false, next: null });
  }

  async send(told) {
    if (this.busy) {
      this.next = told;
      return;
    }
    this.busy = true;
    for (let current = told; current; current = this.next) {
      this.next = null;
      const answer = await ask(this.job, current);
      this.show(answer, current);
      if (!this.next) break;
    }
    this.busy = false;
  }
}
