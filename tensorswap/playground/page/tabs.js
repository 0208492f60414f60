// Tabs as the keyboard expects them: arrows move between them, and one of them takes the focus.

export function tabs(list, chosen) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const choose = (tab, focus = true) => {
    for (const other of all) {
      const selected = other === tab;
      other.setAttribute("aria-selected", String(selected));
      other.tabIndex = selected ? 0 : -1;
      const pane = document.getElementById(other.getAttribute("aria-controls"));
      if (all.some((one) => one.getAttribute("aria-controls") !== other.getAttribute("aria-controls"))) pane.hidden = !selected;
      else pane.setAttribute("aria-labelledby", tab.id);
    }
    if (focus) tab.focus();
    chosen(tab.id.replace("tab-", ""));
  };
  for (const tab of all) tab.addEventListener("click", () => choose(tab));
  list.addEventListener("keydown", (event) => {
    const at = all.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    choose(all[(to + all.length) % all.length]);
  });
  return (name, focus = false) => choose(document.getElementById(`tab-${name}`), focus);
}
