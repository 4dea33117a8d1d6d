import proxlearn as px


def f(x, tau):  # Himmelblau's function with its two constants as parameters: four minima each
    (u, v), (a, b) = x.unbind(-1), tau.unbind(-1)
    return (u**2 + v - a) ** 2 + (u + v**2 - b) ** 2


family = px.Problem.from_function(f, space=px.Box(-5, 5, dim=2), parameters=px.Box([9, 5], [13, 9]))
operator = px.learn(family, seconds=60)
optima = operator.solve([11, 7], starts=2048, steps=20).unique()
print(optima)  # a table; optima.points, .values and .share are tensors
