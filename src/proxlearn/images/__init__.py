"""Images with boxes: files, COCO's lists of them, many packed into one file, generated ones, and
what a training changes about an image. Rests on `common`."""
