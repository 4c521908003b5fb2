// The parts of a report that move: the chart of prices, and the experts as tabs. Both are whole without it.
"use strict";

(() => {
  // Fewer bars than that are drawn as narrow as these would be.
  const FEWEST = 40;

  // The library knows no light-dark(): a canvas resolves a colour to what it is now.
  function resolve(place, name) {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    place.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function drawPrices(place) {
    const { candles, averages, levels, events } = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    if (!candles.length || !window.LightweightCharts) return;
    const lw = window.LightweightCharts;
    const [ink, rule, up, down, amber, quiet, green, red] =
      ["--ink", "--rule", "--up", "--down", "--amber", "--quiet", "--green", "--red"].map((name) => resolve(place, name));
    place.classList.add("live");
    const chart = lw.createChart(place, {
      autoSize: true,
      layout: { attributionLogo: false, background: { type: "solid", color: "transparent" }, textColor: ink },
      grid: { vertLines: { color: rule }, horzLines: { color: rule } },
      rightPriceScale: { borderColor: rule },
      timeScale: { borderColor: rule },
      localization: { locale: document.documentElement.lang },
      handleScroll: { mouseWheel: false },
      handleScale: { mouseWheel: false },
    });
    const bars = chart.addSeries(lw.CandlestickSeries, {
      upColor: up, downColor: down, borderUpColor: up, borderDownColor: down, wickUpColor: up, wickDownColor: down,
    });
    bars.setData(candles.map(([time, open, high, low, close]) => ({ time, open, high, low, close })));
    const volume = chart.addSeries(lw.HistogramSeries, { priceScaleId: "volume", priceFormat: { type: "volume" }, lastValueVisible: false, priceLineVisible: false });
    chart.priceScale("volume").applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
    const faint = (at) => at.replace(/^rgb\((.*)\)$/, "rgba($1, 0.45)");
    volume.setData(candles.map(([time, open, , , close, value]) => ({ time, value, color: faint(close >= open ? up : down) })));
    Object.values(averages).forEach((line, n) => {
      const series = chart.addSeries(lw.LineSeries, { color: n ? quiet : amber, lineWidth: 1, lastValueVisible: false, priceLineVisible: false, crosshairMarkerVisible: false });
      series.setData(line.map(([time, value]) => ({ time, value })));
    });
    for (const [title, price] of Object.entries(levels)) {
      bars.createPriceLine({ price, title, color: quiet, lineWidth: 1, lineStyle: 2, axisLabelVisible: true });
    }
    lw.createSeriesMarkers(bars, events.map(([time, number, side]) => ({
      time, text: String(number), shape: "circle", position: "aboveBar",
      color: side === "for" ? green : side === "against" ? red : quiet,
    })));
    if (candles.length < FEWEST) chart.timeScale().setVisibleLogicalRange({ from: candles.length - FEWEST, to: candles.length });
    else chart.timeScale().fitContent();
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", place.dataset.label);
  }

  // Links to sections become tabs; a link from elsewhere into a hidden one opens it.
  function makeTabs(place) {
    const tabs = [...place.querySelectorAll(".tablist > a")];
    const panels = tabs.map((tab) => document.getElementById(tab.hash.slice(1)));
    const choose = (at, focus) => {
      tabs.forEach((tab, n) => {
        tab.setAttribute("aria-selected", n === at);
        tab.tabIndex = n === at ? 0 : -1;
        panels[n].hidden = n !== at;
      });
      if (focus) tabs[at].focus();
    };
    place.querySelector(".tablist").setAttribute("role", "tablist");
    tabs.forEach((tab, n) => {
      tab.setAttribute("role", "tab");
      tab.id = `tab-${panels[n].id}`;
      tab.setAttribute("aria-controls", panels[n].id);
      panels[n].setAttribute("role", "tabpanel");
      panels[n].setAttribute("aria-labelledby", tab.id);
      tab.addEventListener("click", (event) => {
        event.preventDefault();
        choose(n);
      });
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        choose((n + step + tabs.length) % tabs.length, true);
      });
    });
    const named = () => panels.findIndex((panel) => panel.id === location.hash.slice(1));
    window.addEventListener("hashchange", () => named() >= 0 && choose(named()));
    if (tabs.length) choose(Math.max(named(), 0));
  }

  document.querySelectorAll("[data-chart]").forEach(drawPrices);
  document.querySelectorAll("[data-tabs]").forEach(makeTabs);
})();
