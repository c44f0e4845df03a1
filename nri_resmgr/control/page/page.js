// The page of the node: reads the state of its daemon, and follows the events.
//
// The forms of both are those of the control socket (docs/control.md). Texts of pods are
// set as text, never as markup.

const EVENTS = 300; // lines that are kept on the page
const PAUSE = 1000; // ms between two reads of the state, whatever happens
const QUIET = 15000; // ms between two reads where nothing happens: verification, drift
const AGAIN = 3000; // ms until the next attempt after the daemon did not answer

// Verdicts on cgroups that are no problem.
const GOOD = new Set(["as-decided", "pending", "not-running", "not-pinned"]);

const element = (id) => document.getElementById(id);
const sleep = (time) => new Promise((done) => setTimeout(done, time));

let containers = []; // rows: their cells, and the text that a search looks at
let drawn = ""; // the picture that is shown
let wake = () => {}; // ends the pause before the next read of the state

// Texts.

const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

function cpusText(amount) {
  if (amount === null) return "-";
  return amount % 1000 ? `${amount}m` : `${amount / 1000}`;
}

function sizeText(amount) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let size = amount;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${Number(size.toFixed(1))} ${units[unit]}`;
}

function cpuCount(list) {
  let found = 0;
  for (const part of list.split(",").filter(Boolean)) {
    const [first, last = first] = part.split("-").map(Number);
    found += last - first + 1;
  }
  return found;
}

const titleOf = (one) => `${one.namespace}/${one.pod}/${one.name}`;

function verifiedText(found) {
  const differences = found.differences.map((one) => `${one.kind} ${one.found}`);
  const why = found.why || differences.join(", ");
  return [found.verdict, why].filter(Boolean).join(": ");
}

function inForceText(one) {
  if (one.delivery?.waitingSeconds) {
    return `pending for ${Math.round(one.delivery.waitingSeconds)} s`;
  }
  return one.verification ? verifiedText(one.verification) : "-";
}

const hasDrifted = (one) => Boolean(one.verification) && !GOOD.has(one.verification.verdict);

function eventText(event) {
  if (event.kind === "gap") {
    return event.missed ? `${event.missed} events are no longer kept` : "the daemon was restarted";
  }
  const { title = "", why = "", category = "", containers: named = [], updates = 0 } = event;
  const words = [event.time, event.kind];
  if (!why.startsWith(title)) words.push(title);
  words.push(category, why);
  for (const one of named) {
    const facts = [one.rule, one.cpus && `CPUs ${one.cpus}`, one.mems && `memory ${one.mems}`];
    facts.push(one.pool && `pool ${one.pool}`, one.decided, one.detail);
    words.push([one.title || one.id, ...facts].filter(Boolean).join(" "));
  }
  if (updates) words.push(`changes ${count(updates, "other")}`);
  return words.filter(Boolean).join("  ");
}

// What is shown.

function made(tag, text, name = "") {
  const found = document.createElement(tag);
  found.textContent = text;
  if (name) found.className = name;
  return found;
}

function fill(id, rows) {
  const numbers = [...document.querySelectorAll(`#${id} th`)].map((one) => one.className);
  const lines = rows.map(({ cells, isProblem }) => {
    const line = made("tr", "", isProblem ? "problem" : "");
    line.append(...cells.map((text, place) => made("td", text, numbers[place])));
    return line;
  });
  document.querySelector(`#${id} tbody`).replaceChildren(...lines);
}

function* problemsOf(state) {
  const { session, runtime } = state;
  if (!runtime.name) yield `no session with a runtime${session.endedWhy && `: ${session.endedWhy}`}`;
  if (state.configuration.error) yield `configuration refused: ${state.configuration.error.why}`;
  if (state.checkpoint?.isFailing) yield "the checkpoint is not written";
  for (const one of state.configuration.leftOut) yield `left out: ${one.path}: ${one.why}`;
  for (const one of state.kubelet) yield one.why;
  for (const one of state.parts) {
    yield `${one.name}: ${one.why || `waits for the host for ${Math.round(one.hangsSeconds)} s`}`;
  }
  const { configured, whyNot, partitions } = state.exclusivity;
  if (whyNot) yield `cpuset instead of ${configured}: ${whyNot}`;
  for (const one of partitions) {
    if (!one.inForce) yield `partition of ${one.container}: ${one.why}`;
  }
  const files = state.host?.files;
  for (const one of files?.failing ?? []) yield `cannot write ${one.path}: ${one.why}`;
  for (const one of files?.drifting ?? []) yield `${one.path} has ${one.found} instead of ${one.wanted}`;
  for (const one of state.containers.filter(hasDrifted)) {
    yield `${titleOf(one)}: ${verifiedText(one.verification)}`;
  }
}

function showPools(pools) {
  const depths = new Map();
  const rows = pools.map((pool) => {
    const depth = depths.has(pool.within) ? depths.get(pool.within) + 1 : 0;
    depths.set(pool.name, depth);
    const cells = [
      "\u2007".repeat(2 * depth) + pool.name,
      ...[pool.cpus, pool.shared, pool.exclusive].map((list) => list || "-"),
      cpusText(pool.cpu.granted),
      cpusText(pool.cpu.free),
      pool.mems || "-",
      pool.memory.capacity ? sizeText(pool.memory.granted) : "-",
      `${pool.containers.length}`,
    ];
    return { cells };
  });
  fill("pools", rows);
}

function containerRow(one) {
  const cells = [
    titleOf(one),
    one.qos,
    cpusText(one.request.cpu),
    one.pool || "-",
    one.cpus || "any",
    one.exclusive || "-",
    one.mems || "any",
    inForceText(one),
  ];
  return { cells, isProblem: hasDrifted(one), text: cells.join(" ").toLowerCase() };
}

function search() {
  const words = element("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = containers.filter(({ text }) => words.every((word) => text.includes(word)));
  fill("containers", found);
  element("found").textContent = words.length
    ? `${found.length} of ${count(containers.length, "container")}`
    : count(containers.length, "container");
}

function showState(state) {
  const { daemon, runtime, session, cpus } = state;
  const served = runtime.name ? `${runtime.name} ${runtime.version}, ${session.state}` : "no runtime";
  const words = [`${daemon.version} as ${daemon.plugin}`, state.policy, served];
  if (daemon.dryRun) words.push("dry run: nothing is changed");
  element("headline").textContent = words.join(" · ");
  document.title = `${state.policy} · nri-resmgr`;
  const kinds = ["exclusive", "shared", "reserved", "isolated", "idle"];
  const counts = kinds.map((kind) => `${cpuCount(cpus[kind])} ${kind}`);
  element("cpus").textContent = `${cpuCount(cpus.online)} online: ${counts.join(", ")}`;
  const problems = [...problemsOf(state)].map((text) => made("li", text));
  element("problems").hidden = problems.length === 0;
  document.querySelector("#problems ul").replaceChildren(...problems);
  showPools(state.pools);
  containers = state.containers.map(containerRow);
  search();
}

function showPicture(text) {
  if (text === drawn) return;
  drawn = text;
  const picture = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  element("picture").replaceChildren(document.importNode(picture, true));
}

function showEvent(event) {
  const isRefusal = /\.(refused|rejected)$/.test(event.kind);
  for (const id of isRefusal ? ["events", "refusals"] : ["events"]) {
    const list = element(id);
    list.prepend(made("li", eventText(event), isRefusal ? "refusal" : ""));
    while (list.children.length > EVENTS) list.lastChild.remove();
  }
}

function showConnection(problem) {
  element("connection").textContent = problem ? `no answer: ${problem}; trying again` : "live";
  element("connection").className = problem ? "lost" : "";
}

// The daemon.

async function ask(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
  return answer;
}

async function* linesOf(answer) {
  let rest = "";
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    yield* lines;
  }
}

async function visible() {
  while (document.hidden) {
    await new Promise((done) => {
      document.addEventListener("visibilitychange", done, { once: true });
    });
  }
}

async function readStates() {
  for (;;) {
    await visible();
    let pause = QUIET;
    const woken = new Promise((done) => {
      wake = done;
    });
    try {
      showState(await (await ask("v1/state")).json());
      showPicture(await (await ask("picture.svg")).text());
      showConnection("");
    } catch (error) {
      showConnection(error.message);
      pause = AGAIN;
    }
    await Promise.race([sleep(pause), woken]);
    await sleep(PAUSE);
  }
}

async function followEvents() {
  let last = 0;
  for (;;) {
    try {
      for await (const line of linesOf(await ask(`v1/events?follow=1&since=${last}`))) {
        const event = JSON.parse(line);
        if (event.kind === "EventList") continue;
        last = event.number ?? last;
        showEvent(event);
        wake();
      }
    } catch {
      wake(); // the state shows why
    }
    await sleep(AGAIN);
  }
}

element("search").addEventListener("input", search);
readStates();
followEvents();
