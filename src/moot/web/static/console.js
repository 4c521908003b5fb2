// What the console needs a script for; pages are whole without it, but do not move by themselves.
"use strict";

(() => {
  // As days are written on every page: 2026-06-30.
  const when = new Intl.DateTimeFormat("sv-SE", {
    year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
  });

  // Moments in the reader's own zone; UTC stays in the title.
  function localise(root) {
    for (const each of root.querySelectorAll("time.moment:not([title])")) {
      each.title = each.textContent;
      each.textContent = when.format(new Date(each.dateTime));
    }
  }

  // How long something has been under way.
  function tick() {
    for (const each of document.querySelectorAll("[data-since]")) {
      const seconds = Math.max(0, (Date.now() - Date.parse(each.dataset.since)) / 1000);
      each.textContent = seconds.toFixed(0) + each.dataset.unit;
    }
  }

  // A part of the page has come anew: it takes the place of the one with its id, and what was opened stays open.
  function replace(html) {
    const made = document.createElement("template");
    made.innerHTML = html;
    for (const part of [...made.content.children]) {
      const old = document.getElementById(part.id);
      if (!old) continue;
      old.replaceWith(part);
      localise(part);
      window.htmx?.process(part);
    }
    tick();
  }

  // Reconnects by itself when the line breaks; after `done` the page is asked for as it is now.
  function listen(place) {
    const source = new EventSource(place.dataset.stream);
    source.addEventListener("part", (event) => replace(event.data));
    source.addEventListener("done", () => {
      source.close();
      window.location.reload();
    });
    window.addEventListener("pagehide", () => source.close());
  }

  document.addEventListener("click", (event) => {
    const choice = event.target.closest("[data-fill]");
    if (!choice) return;
    document.getElementById(choice.dataset.fill).value = choice.value;
    choice.closest("ul").replaceChildren();
  });

  document.addEventListener("submit", (event) => {
    const sure = event.target.dataset.confirm;
    if (sure && !window.confirm(sure)) event.preventDefault();
  });

  document.addEventListener("htmx:afterSwap", (event) => localise(event.target));
  // Where the navigation is wider than a phone, the page one is at is in sight; a keyboard still begins at the top.
  const here = document.querySelector(".top nav [aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.clientWidth / 2;
  localise(document);
  tick();
  setInterval(tick, 1000);
  document.querySelectorAll("[data-stream]").forEach(listen);
})();
