/** Patterns of the chart's bars, so that the parts can be told apart without colours. */

import uPlot from 'uplot';

type Fill = string | CanvasPattern;

/** In CSS pixels: the width and height of a pattern's tile. */
const sizeOfTile = 6;

export function hatched(colour: string, ground: string): Fill {
  return patternOf(colour, ground, (context) => {
    context.lineWidth = 2;
    for (const start of [-sizeOfTile, 0, sizeOfTile]) {
      context.moveTo(start - 1, sizeOfTile + 1);
      context.lineTo(start + sizeOfTile + 1, -1);
    }
    context.stroke();
  });
}

export function dotted(colour: string, ground: string): Fill {
  return patternOf(colour, ground, (context) => {
    for (const at of [1.5, 4.5]) context.rect(at - 1, at - 1, 2, 2);
    context.fill();
  });
}

/** The pattern, or the plain colour if the browser cannot draw one. */
function patternOf(colour: string, ground: string, draw: (context: CanvasRenderingContext2D) => void): Fill {
  const tile = document.createElement('canvas');
  tile.width = tile.height = Math.round(sizeOfTile * uPlot.pxRatio);
  const context = tile.getContext('2d');
  if (!context) return colour;
  context.scale(tile.width / sizeOfTile, tile.height / sizeOfTile);
  context.fillStyle = ground;
  context.fillRect(0, 0, sizeOfTile, sizeOfTile);
  context.fillStyle = context.strokeStyle = colour;
  context.beginPath();
  draw(context);
  return context.createPattern(tile, 'repeat') ?? colour;
}
