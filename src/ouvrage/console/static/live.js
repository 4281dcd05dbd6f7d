// Keeps an open page true without a reload. Every region of the page is asked for anew with the whole page, at the pace that the
// page names, and put in place only where it changed; a log asks for the bytes after those that it has. Nothing here decides or
// computes; without it the page says the same, once.
"use strict";
(() => {
  const main = document.querySelector("main");
  const state = document.querySelector("[data-state]");
  const pace = Number(main?.dataset.live || 0) * 1000;
  const french = document.documentElement.lang === "fr";
  const away = french ? "Serveur injoignable : nouvel essai" : "Server away: trying again";
  let failures = 0;

  const say = (words) => { if (state && state.textContent !== words) state.textContent = words; };
  const later = (task, ms) => setTimeout(() => (document.hidden ? later(task, ms) : task()), ms);
  const pause = (ms) => Math.min(ms * 2 ** Math.min(failures, 5), 60000);

  async function fresh() {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect" || answer.status === 401) { location.reload(); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const region of document.querySelectorAll("[data-region]")) {
        const other = next.querySelector(`[data-region="${region.dataset.region}"]`);
        const busy = region.contains(document.activeElement) && document.activeElement !== document.body;
        if (other && !busy && other.innerHTML !== region.innerHTML) region.replaceChildren(...other.childNodes);
      }
      failures = 0;
      say("");
    } catch {
      failures += 1;
      say(away);
    }
    later(fresh, pause(pace));
  }

  async function follow(log) {
    const decoder = new TextDecoder();
    try {
      const answer = await fetch(`${log.dataset.follow}?offset=${log.dataset.offset}&follow=true`, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const over = answer.headers.get("Ouvrage-Log-State") !== "open";
      const reader = answer.body.getReader();
      failures = 0;
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
        log.append(decoder.decode(piece.value, { stream: true }));
        log.dataset.offset = String(Number(log.dataset.offset) + piece.value.byteLength);
        if (atEnd) log.scrollTop = log.scrollHeight;
        say("");
      }
      if (!over) later(() => follow(log), 500);
    } catch {
      failures += 1;
      say(away);
      later(() => follow(log), pause(1000));
    }
  }

  if (pace) later(fresh, pace);
  for (const log of document.querySelectorAll("pre[data-follow]")) { log.scrollTop = log.scrollHeight; follow(log); }
})();
